package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Watch a space from boot to close, every claim checked",
		Long: "Boots a broker, an identity provider and a space in a temporary directory, lets two\n" +
			"people talk, revokes one, retires another, kills every actor once, closes, and\n" +
			"checks each step. It exits 1 at the first that does not hold.",
		RunE: doing(func(ctx context.Context, _ []string) error {
			ctx, stop := signal.NotifyContext(ctx, endings()...)
			defer stop()
			return a.demo(ctx)
		}),
	}
}

func (a *app) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "authplane-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began, count := time.Now(), 0
	line := func(l demo.Line) {
		count++
		a.tellStep(l)
	}
	if !a.json {
		_, _ = fmt.Fprintf(a.out, "authplane demo: one space, from boot to close\n\n")
	}
	if err := demo.Tell(ctx, &devStage{options: devOptions{dir: dir, space: "demo", logger: quiet()}}, line); err != nil {
		return failure{fmt.Errorf("demo: %w", err)}
	}
	return a.tellDemo(count, time.Since(began))
}

func (a *app) tellStep(l demo.Line) {
	if a.json {
		_ = writeJSON(a.out, l)
		return
	}
	mark := "✓"
	if !l.OK {
		mark = "✗"
	}
	told := strings.ReplaceAll(l.Told, "\n", "\n               ")
	_, _ = fmt.Fprintf(a.out, "  %s %-10s %s\n", mark, l.Step, told)
}

func (a *app) tellDemo(steps int, took time.Duration) error {
	if a.json {
		return writeJSON(a.out, map[string]any{"ok": true, "steps": steps, "took_ms": took.Milliseconds()})
	}
	_, err := fmt.Fprintf(a.out, "\nall %d steps hold, %.1f s\n", steps, took.Seconds())
	return err
}
