package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// decode reads an answer of the service. Fields this command does not know are
// those of a newer service, and are left alone.
func decode(answer json.RawMessage, into any) error {
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read the answer of the service: %w", err)
	}
	return nil
}

// writeJSON writes one value as one line. Patterns such as `chat.>` stay as they are.
func writeJSON(w io.Writer, value any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err := line.WriteTo(w)
	return err
}

// passJSON writes what the service answered, as one line.
func passJSON(w io.Writer, answer json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, answer); err != nil {
		return fmt.Errorf("read the answer of the service: %w", err)
	}
	line.WriteByte('\n')
	_, err := line.WriteTo(w)
	return err
}

// table writes rows in columns, below a head.
func table(w io.Writer, head string, rows [][]string) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, strings.ToUpper(head))
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	return columns.Flush()
}

// pairs writes names and values, one pair a line. Pairs without a value are left out.
func pairs(w io.Writer, list ...[2]string) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, pair := range list {
		if pair[1] != "" {
			_, _ = fmt.Fprintf(columns, "%s\t%s\n", pair[0], pair[1])
		}
	}
	return columns.Flush()
}

// moment writes a time for people, in their own zone.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05")
}
