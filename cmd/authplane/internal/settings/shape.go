package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// shape reads YAML into a struct and notes whatever does not fit, with its line.
type shape struct {
	problems []problem
	// lines tells where each dotted key stands.
	lines map[string]int
}

// read fills into, a pointer to a struct, from one YAML document.
func (s *shape) read(body []byte, into any) {
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return // an empty file lacks everything, which is for Validate to say
	case err != nil:
		s.note(problem{text: strings.TrimPrefix(err.Error(), "yaml: ")})
		return
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		s.note(problem{text: "must be one YAML document"})
	}
	s.mapping("", document.Content[0], reflect.ValueOf(into).Elem())
}

func (s *shape) note(p problem) { s.problems = append(s.problems, p) }

// mapping fills the fields of a struct, matched by their yaml tags.
func (s *shape) mapping(prefix string, node *yaml.Node, into reflect.Value) {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		s.note(problem{node.Line, strings.TrimSuffix(prefix, "."), "must be a mapping of keys to values"})
		return
	}
	fields := fieldsOf(into)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		field, known := fields[name.Value]
		switch {
		case !known:
			s.note(problem{name.Line, key, "is not a setting" + suggestion(name.Value, fields)})
		case s.lines[key] != 0:
			s.note(problem{name.Line, key, fmt.Sprintf("stands twice, first on line %d", s.lines[key])})
		default:
			s.lines[key] = name.Line
			s.value(key, value, field)
		}
	}
}

// value fills one field.
func (s *shape) value(key string, node *yaml.Node, into reflect.Value) {
	node = resolve(node)
	if node.ShortTag() == "!!null" {
		s.note(problem{node.Line, key, "has no value; leave the key out instead"})
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		s.mapping(key+".", node, into.Elem())
	case reflect.Struct:
		s.mapping(key+".", node, into)
	case reflect.Slice:
		s.list(key, node, into)
	case reflect.Int:
		if node.ShortTag() != "!!int" || node.Decode(into.Addr().Interface()) != nil {
			s.note(problem{node.Line, key, "must be a whole number"})
		}
	case reflect.Bool:
		if node.ShortTag() != "!!bool" || node.Decode(into.Addr().Interface()) != nil {
			s.note(problem{node.Line, key, "must be true or false"})
		}
	default:
		s.text(key, node, into)
	}
}

func (s *shape) list(key string, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.SequenceNode {
		s.note(problem{node.Line, key, "must be a list"})
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		if into.Index(i).Kind() == reflect.Struct {
			entry := fmt.Sprintf("%s[%d]", key, i)
			s.lines[entry] = item.Line
			s.mapping(entry+".", item, into.Index(i))
			continue
		}
		s.text(key, resolve(item), into.Index(i))
	}
}

func (s *shape) text(key string, node *yaml.Node, into reflect.Value) {
	switch {
	case node.Kind != yaml.ScalarNode:
		s.note(problem{node.Line, key, "must be text"})
	case node.ShortTag() != "!!str":
		s.note(problem{node.Line, key, "must be text; put it in quotes"})
	default:
		into.SetString(node.Value)
	}
}

// resolve follows an alias to what it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// fieldsOf finds the fields of a struct by their tags, those of an embedded one
// among them.
func fieldsOf(structure reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value, structure.NumField())
	for i := range structure.NumField() {
		if field := structure.Type().Field(i); field.Anonymous {
			maps.Copy(fields, fieldsOf(structure.Field(i)))
		} else {
			fields[field.Tag.Get("yaml")] = structure.Field(i)
		}
	}
	return fields
}

// suggestion names a key that differs only in case, dashes and underscores.
func suggestion(name string, fields map[string]reflect.Value) string {
	plain := strings.NewReplacer("-", "", "_", "")
	for field := range fields {
		if strings.EqualFold(plain.Replace(field), plain.Replace(name)) {
			return "; it is spelled " + field
		}
	}
	return ""
}
