package stream

import "strings"

// Records is the stream of what services write: another bucket in the shape of the
// authority stream, opened and proved like it.
func (c Config) Records() Config {
	c.records = true
	return c
}

// bucket is the name of the stream's bucket.
func (c Config) bucket() string {
	if c.records {
		return "cotal_records_" + c.Space
	}
	return "cotal_authority_" + c.Space
}

// Changed is where a nudge appears once a row that matches keys was written. It is
// never evidence: whoever hears it reads the row.
func (c Config) Changed(keys string) string {
	if c.records {
		return "cotal." + c.Space + ".recorded." + keys
	}
	return "cotal." + c.Space + ".changed." + keys
}

// key is the row that is stored under subject.
func (c Config) key(subject string) (key string, ours bool) {
	return strings.CutPrefix(subject, c.prefix())
}
