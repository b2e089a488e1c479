package face

import (
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// A grant over a revoked one waits for the end of the former life.
func TestAGrantWaitsForTheFormerIncarnation(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	former := w.do("DELETE", w.url+"/v1/grants/"+p.Owner+"/laptop", "").text("uid")
	w.rows.stand(p, former)
	op, answers := w.begin("POST", "/v1/grants", about(p, ""))
	if asked := w.desk.retired; op != retirementOf(former) || len(asked) != 1 || asked[0].UID != former {
		t.Errorf("asked %+v", asked)
	}
	w.desk.finish(op, messages.StepDone)
	if a := <-answers; a.status != 201 || a.text("uid") == "" || a.text("uid") == former {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// One that cannot be waited for is refused with what leads on. The desk being away
// makes that quick.
func TestAGrantOverAnIncarnationThatDoesNotEnd(t *testing.T) {
	w := newWorld(t)
	w.desk.set(func(d *desk) { d.absent = true })
	p := w.used("user-1", "laptop")
	former := w.do("DELETE", w.url+"/v1/grants/"+p.Owner+"/laptop", "").text("uid")
	w.rows.stand(p, former)
	a := w.do("POST", w.url+"/v1/grants", about(p, ""))
	if a.status != 412 || a.reason() != "incarnation.standing" || a.text("error", "op_id") != retirementOf(former) ||
		a.text("error", "next") != "authplane retire "+p.Owner+"/laptop" || !strings.Contains(a.text("error", "waiting_for"), "holds the plane") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestGrantANewIncarnation(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	path := w.url + "/v1/grants/" + p.Owner + "/laptop"
	first := w.do("GET", path, "")

	// By a new grant, which says what is granted anew.
	op, answers := w.begin("POST", "/v1/grants", about(p, `,"new_incarnation":true,"publish":["demo.b"]`))
	if op != retirementOf(first.text("uid")) {
		t.Errorf("retired %+v", w.desk.retired)
	}
	w.desk.finish(op, messages.StepDone)
	second := <-answers
	if second.status != 201 || second.text("uid") == first.text("uid") || second.fields["revision"] != 1.0 {
		t.Errorf("%d %s", second.status, second.body)
	}

	// By an edit, which keeps what stands unless it says otherwise.
	w.desk.set(func(d *desk) { d.instant = true })
	if a := w.exchange("user-1", "laptop"); a.status != 200 {
		t.Fatalf("exchange: %d %s", a.status, a.body)
	}
	third := w.do("PUT", path, `{"revision":1,"new_incarnation":true}`)
	shown := w.do("GET", path, "")
	if third.status != 200 || third.text("uid") == second.text("uid") || shown.text("uid") != third.text("uid") ||
		!strings.Contains(shown.body, `"publish":["demo.b"]`) || shown.text("state") != "live" {
		t.Errorf("%d %s\n%s", third.status, third.body, shown.body)
	}

	// Nobody ever was the third: there is nothing to wait for.
	fourth := w.do("POST", w.url+"/v1/grants", about(p, `,"new_incarnation":true`))
	if fourth.status != 201 || fourth.text("uid") == third.text("uid") {
		t.Errorf("%d %s", fourth.status, fourth.body)
	}
	// And there need not be anybody.
	if a := w.do("POST", w.url+"/v1/grants", `{"sub":"user-2","actor":"laptop","new_incarnation":true}`); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestANewIncarnationOfAMachineHasANewSecret(t *testing.T) {
	w := newWorld(t)
	w.desk.set(func(d *desk) { d.instant = true })
	owner, secret := w.machine("user-1", "robot")
	a := w.do("PUT", w.url+"/v1/grants/"+owner+"/robot", `{"revision":1,"new_incarnation":true}`)
	if a.status != 200 || a.text("actor_token") == "" || a.text("actor_token") == secret {
		t.Fatalf("%d %s", a.status, a.body)
	}
	shown := w.do("GET", w.url+"/v1/grants/"+owner+"/robot", "")
	if shown.text("kind") != "managed" || shown.text("parent") != owner+".boss_robot" {
		t.Errorf("%s", shown.body)
	}
}

// What is refused ends nobody.
func TestANewIncarnationThatIsRefusedLeavesTheOldOne(t *testing.T) {
	w := newWorld(t)
	owner, _ := w.machine("user-1", "robot")
	path := "/v1/grants/" + owner + "/robot"
	managed := `{"owner":"` + owner + `","actor":"robot","kind":"managed","parent":"` + owner + `.boss_robot","new_incarnation":true`
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"PUT", path, `{"revision":1,"new_incarnation":true,"publish":["elsewhere.>"]}`, 403},
		{"PUT", path, `{"revision":1,"new_incarnation":true,"publish":["$SYS.>"]}`, 400},
		{"PUT", path, `{"revision":1,"new_incarnation":"yes"}`, 400},
		{"PUT", path, `{"revision":2,"new_incarnation":true}`, 409},
		{"PUT", path + "?wait=x", `{"revision":1,"new_incarnation":true}`, 400},
		{"PUT", "/v1/grants/" + owner + "/nobody", `{"revision":1,"new_incarnation":true}`, 404},
		{"POST", "/v1/grants", managed + `,"publish":["elsewhere.>"]}`, 403},
		{"POST", "/v1/grants", managed + `,"label":"` + strings.Repeat("a", 300) + `"}`, 400},
		{"POST", "/v1/grants", managed + `,"role":"wide"}`, 400},
		{"POST", "/v1/grants", `{"owner":"` + owner + `","actor":"robot","kind":"managed","parent":"` + owner + `.nobody","new_incarnation":true}`, 403},
	} {
		if a := w.do(c.method, w.url+c.path, c.body); a.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.body, a.status, a.body)
		}
	}
	if shown := w.do("GET", w.url+path, ""); shown.text("state") != "live" || len(w.desk.retired) != 0 {
		t.Errorf("%s, retired %v", shown.body, w.desk.retired)
	}
}

// One that takes too long is told of with its operation; the grant can be repeated.
func TestANewIncarnationThatTakesTooLong(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	a := w.do("POST", w.url+"/v1/grants?wait=0", about(p, `,"new_incarnation":true`))
	op := a.text("error", "op_id")
	if a.status != 503 || a.reason() != "operation.pending" || op == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	w.desk.finish(op, messages.StepDone)
	if a := w.do("POST", w.url+"/v1/grants?wait=0", about(p, `,"new_incarnation":true`)); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Who is overtaken by another new incarnation is told that the grant has moved: nobody
// has forbidden it.
func TestANewIncarnationThatIsOvertaken(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	w.desk.set(func(d *desk) { d.refuses = messages.IncarnationEnded })
	a := w.do("POST", w.url+"/v1/grants", about(p, `,"new_incarnation":true`))
	if a.status != 409 || a.text("error", "reason") != "grant.moved" || a.text("error", "next") != "authplane show "+p.Owner+"/laptop" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
