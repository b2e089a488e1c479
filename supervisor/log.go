package supervisor

import "time"

// emit publishes an event and logs those that somebody should read.
func (t *Tree) emit(e Event) {
	t.hub.publish(e)
	log := t.set.logger
	switch v := e.(type) {
	case Died:
		log.Warn("actor died", "actor", v.Path, "generation", v.Generation, "error", v.Cause)
	case Restarting:
		log.Info("actor restarts", "actor", v.Path, "in", v.In.Round(time.Millisecond), "restarts", v.Count, "error", v.Cause)
	case Fenced:
		log.Warn("group fenced", "actor", v.Path, "by", v.By, "reason", v.Reason)
	case Healed:
		log.Info("group healed", "actor", v.Path, "took", v.Took.Round(time.Millisecond))
	case StillRunning:
		log.Warn("actor still running", "actor", v.Path, "generation", v.Generation, "what", v.What)
	case RejectedMessage:
		log.Debug("messages rejected", "actor", v.Path, "count", v.Count, "reason", v.Reason)
	case ResourceHeld:
		log.Debug("resource held", "actor", v.Path, "generation", v.Generation, "label", v.Label)
	case ResourceEnded:
		log.Debug("resource ended", "actor", v.Path, "generation", v.Generation, "label", v.Label)
	case Failed:
		log.Error("group failed", "actor", v.Path, "error", v.Cause)
	}
}

func (t *Tree) resourceEvent(path string, generation uint64, label string, ended bool) {
	if ended {
		t.emit(ResourceEnded{Origin: t.origin(path, generation), Label: label})
	} else {
		t.emit(ResourceHeld{Origin: t.origin(path, generation), Label: label})
	}
}
