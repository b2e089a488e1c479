package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// operation is what a process says of one.
type operation struct {
	OpID       string   `json:"op_id"`
	UID        string   `json:"uid"`
	Outcome    string   `json:"outcome"`
	Step       string   `json:"step"`
	Revoked    int      `json:"revoked"`
	Evicted    int      `json:"evicted"`
	Vacuous    bool     `json:"vacuous"`
	Eviction   string   `json:"eviction"`
	Servers    []string `json:"servers"`
	Began      string   `json:"began"`
	Ended      string   `json:"ended"`
	WaitingFor string   `json:"waiting_for"`
	Next       string   `json:"next"`
}

// named is the person as a request names one.
func (w *person) named() map[string]string {
	return map[string]string{"owner": owner, "actor": w.actor}
}

// retire asks for the retirement until it is answered with the proof.
func (q *process) retire(who *person) (end operation) {
	q.Helper()
	q.eventually("retire "+who.actor, func() error {
		_, err := q.call(http.MethodPost, "/v1/retire?wait=10", who.named(), &end, http.StatusOK)
		return err
	})
	return end
}

// retireLater asks for the retirement and does not wait for it. It returns the id of
// the operation.
func (q *process) retireLater(who *person) string {
	q.Helper()
	var answer struct {
		Error struct {
			Reason string
			OpID   string `json:"op_id"`
		}
	}
	q.eventually("ask for the retirement of "+who.actor, func() error {
		_, err := q.call(http.MethodPost, "/v1/retire?wait=0", who.named(), &answer, http.StatusServiceUnavailable)
		if err == nil && (answer.Error.Reason != "operation.pending" || answer.Error.OpID == "") {
			err = fmt.Errorf("%+v", answer)
		}
		return err
	})
	return answer.Error.OpID
}

// reaches waits until an operation is at a step.
func (q *process) reaches(id, step string) {
	q.Helper()
	q.eventually("the operation is "+step, func() error {
		var now operation
		_, err := q.call(http.MethodGet, "/v1/operations/"+id, nil, &now, http.StatusOK)
		if err == nil && now.Step == "done" {
			q.Fatalf("it is over: %+v", now)
		}
		if err == nil && now.Step != step {
			err = fmt.Errorf("it is %s", now.Step)
		}
		return err
	})
}

// open is what the process lists of an operation that is not over.
func (q *process) open(id string) (operation, error) {
	var list struct{ Operations []operation }
	if _, err := q.call(http.MethodGet, "/v1/operations", nil, &list, http.StatusOK); err != nil {
		return operation{}, err
	}
	i := slices.IndexFunc(list.Operations, func(o operation) bool { return o.OpID == id })
	if i < 0 {
		return operation{}, fmt.Errorf("it is not among %+v", list.Operations)
	}
	return list.Operations[i], nil
}

// waitsFor waits until an operation that is not over says why, in these words, and
// which command leads on.
func (q *process) waitsFor(id, next string, words ...string) {
	q.Helper()
	q.eventually("the operation says what it waits for", func() error { return q.saysWhy(id, next, words...) })
}

func (q *process) saysWhy(id, next string, words ...string) error {
	o, err := q.open(id)
	if err != nil {
		return err
	}
	if o.Next != next {
		return fmt.Errorf("next: %+v", o)
	}
	for _, w := range words {
		if !strings.Contains(o.WaitingFor, w) {
			return fmt.Errorf("%q is not in %q", w, o.WaitingFor)
		}
	}
	return nil
}

// retired makes sure of the proof of a retirement: by these servers, and that nobody
// was taken for gone who was not.
func (p *play) retired(end operation, who *person, lines []*line, by ...*server) {
	p.Helper()
	var names []string
	for _, v := range by {
		names = append(names, v.name)
	}
	if end.Outcome != "retired" || end.Eviction != "swept" || end.Vacuous || !slices.Equal(end.Servers, names) {
		p.Errorf("the proof is %+v", end)
	}
	p.hungUp(lines)
	for _, v := range by {
		p.eventually(who.actor+" is refused by "+v.name, func() error {
			switch err := who.try(v); {
			case err == nil:
				p.Fatalf("%s came back to %s", who.actor, v.name)
				return nil
			case isDenied(err):
				return nil
			default:
				return err
			}
		})
	}
}

// everywhere has the person connect once to each of the servers.
func (w *person) everywhere(to ...*server) (lines []*line) {
	w.Helper()
	for _, v := range to {
		lines = append(lines, w.join(v))
	}
	return lines
}

// same makes sure that asking again is answered with what was.
func (q *process) same(who *person, end operation) {
	q.Helper()
	q.eventually("asking again", func() error {
		var again operation
		_, err := q.call(http.MethodPost, "/v1/retire?wait=10", who.named(), &again, http.StatusOK)
		if err == nil && fmt.Sprint(again) != fmt.Sprint(end) {
			q.Fatalf("first %+v, then %+v", end, again)
		}
		return err
	})
}

// steps counts the changes of one operation, of the gate it holds and of what is owed,
// from a time on.
func (c *changes) steps(id string, who *person, since time.Time) (of map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of = map[string]int{}
	for _, one := range c.heard {
		if one.at.Before(since) {
			continue
		}
		switch one.key {
		case "op." + id, "owed", "head." + owner + "." + who.actor:
			kind, _, _ := strings.Cut(one.key, ".")
			of[kind]++
		}
	}
	return of
}
