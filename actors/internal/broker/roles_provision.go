package broker

import (
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Provisioner is `provisioner`: it makes the parts of one footprint, which is written
// out, and sees whether they are there. It removes nothing, makes nothing of any other
// name, and reads no message of a stream.
func Provisioner(f messages.Footprint) Role {
	r := Role{name: "provisioner", account: trust.DATA, life: shortLived}
	for _, c := range f.Consumers {
		making := "$JS.API.CONSUMER.CREATE." + c.Stream + "." + c.Name
		if len(c.Filters) == 1 { // the server holds the request's filter to the one of the subject
			making += "." + c.Filters[0]
		}
		r.publish = append(r.publish, making, "$JS.API.CONSUMER.INFO."+c.Stream+"."+c.Name)
	}
	r.publish = append(r.publish, keeping(f.Rows)...)
	return r
}

// Deprovisioner is `deprovisioner`: it removes the parts of one footprint, by their
// exact names, once it has seen that they are those. A KV row is removed by a write, so
// it could also write it.
func Deprovisioner(f messages.Footprint) Role {
	r := Role{name: "deprovisioner", account: trust.DATA, life: shortLived}
	for _, c := range f.Consumers {
		of := c.Stream + "." + c.Name
		r.publish = append(r.publish, "$JS.API.CONSUMER.DELETE."+of, "$JS.API.CONSUMER.INFO."+of)
	}
	r.publish = append(r.publish, keeping(f.Rows)...)
	return r
}

// keeping is what it takes to write and to see some rows, and whether their bucket is
// there.
func keeping(rows []messages.FootprintRow) []string {
	var publish []string
	for _, row := range rows {
		publish = append(publish, FootprintSubject(row), directly(row))
		if about := "$JS.API.STREAM.INFO." + bucketStream(row.Bucket); !slices.Contains(publish, about) {
			publish = append(publish, about)
		}
	}
	return publish
}

// FootprintSubject is the subject of a row in a bucket of DATA.
func FootprintSubject(r messages.FootprintRow) string { return "$KV." + r.Bucket + "." + r.Key }

func bucketStream(bucket string) string { return "KV_" + bucket }

// directly reads one row and no other, which the leader's own read cannot be held to.
func directly(r messages.FootprintRow) string {
	return "$JS.API.DIRECT.GET." + bucketStream(r.Bucket) + "." + FootprintSubject(r)
}
