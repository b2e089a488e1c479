package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
)

// newLogger logs to w as told: text where a person watches, JSON elsewhere.
func newLogger(w io.Writer, how settings.Log) *slog.Logger {
	var level slog.Level
	if how.Level != "" {
		// Load has checked the name; info is what is left of a wrong one.
		_ = level.UnmarshalText([]byte(how.Level))
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if how.Format == "text" || how.Format == "" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// readable writes durations with their unit, `1.9s`, in JSON also.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		attr.Value = slog.StringValue(attr.Value.Duration().Round(time.Microsecond).String())
	}
	return attr
}

// isTerminal reports whether a person sits behind w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
