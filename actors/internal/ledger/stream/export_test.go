package stream

import "time"

// DoubtFor sets, before r runs, how long another server may take itself for the leader.
func DoubtFor(r *LeaderReader, d time.Duration) { r.doubtFor = d }
