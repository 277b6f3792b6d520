package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Database is where the ledger is kept: in a file of SQLite's, or on servers of PostgreSQL's.
type Database struct {
	// SQLite is the path of the file; empty where the ledger is on PostgreSQL.
	SQLite string
	// Postgres is the address as it was given, which may hold a password.
	Postgres string
}

// String names the database to people and in logs, without who signs in to it and how.
func (d Database) String() string {
	if d.Postgres == "" {
		return d.SQLite
	}
	s, err := postgresSettings(d.Postgres)
	if err != nil {
		return "the PostgreSQL database"
	}
	ports := strings.Split(s["port"], ",")
	var hosts []string
	for i, host := range strings.Split(s["host"], ",") {
		host = url.PathEscape(host) // it may be the directory of a socket
		if i < len(ports) && ports[i] != "" {
			host = net.JoinHostPort(host, ports[i])
		}
		hosts = append(hosts, host)
	}
	return "postgres://" + strings.Join(hosts, ",") + "/" + url.PathEscape(s["dbname"])
}

// GoString keeps the password out of %#v too.
func (d Database) GoString() string { return strconv.Quote(d.String()) }

// Environ is the address as the variables that PostgreSQL's own programs read. It is a secret.
func (d Database) Environ() []string {
	s, err := postgresSettings(d.Postgres)
	if err != nil { // it was checked
		return nil
	}
	var environ []string
	for setting, value := range s {
		if variable, known := postgresVariables[setting]; known {
			environ = append(environ, variable+"="+value)
		}
	}
	return environ
}

// postgresVariables are the parameters of an address that PostgreSQL's programs know too. Others are
// settings of a session, or of our driver.
var postgresVariables = map[string]string{
	"application_name":         "PGAPPNAME",
	"channel_binding":          "PGCHANNELBINDING",
	"connect_timeout":          "PGCONNECT_TIMEOUT",
	"dbname":                   "PGDATABASE",
	"gssencmode":               "PGGSSENCMODE",
	"host":                     "PGHOST",
	"krbsrvname":               "PGKRBSRVNAME",
	"options":                  "PGOPTIONS",
	"passfile":                 "PGPASSFILE",
	"password":                 "PGPASSWORD",
	"port":                     "PGPORT",
	"require_auth":             "PGREQUIREAUTH",
	"service":                  "PGSERVICE",
	"servicefile":              "PGSERVICEFILE",
	"ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
	"sslcert":                  "PGSSLCERT",
	"sslkey":                   "PGSSLKEY",
	"sslmode":                  "PGSSLMODE",
	"sslnegotiation":           "PGSSLNEGOTIATION",
	"sslrootcert":              "PGSSLROOTCERT",
	"sslsni":                   "PGSSLSNI",
	"target_session_attrs":     "PGTARGETSESSIONATTRS",
	"user":                     "PGUSER",
}

// errNoPostgresAddress quotes nothing: what can't be read may hold a password anywhere.
var errNoPostgresAddress = errors.New("it is not the address of a PostgreSQL database")

// postgresSettings takes an address apart as PostgreSQL does, whose syntax is not quite that of URLs:
// there may be several hosts. Hosts and ports are lists that go together.
func postgresSettings(address string) (map[string]string, error) {
	settings := escaped{}
	_, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "@/"); end >= 0 && rest[end] == '@' {
		user, password, _ := strings.Cut(rest[:end], ":")
		settings["user"], settings["password"] = user, password
		rest = rest[end+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	places, database, _ := strings.Cut(rest, "/")
	if strings.Contains(database, "@") { // then what stands before it is a password, and no host
		return nil, errNoPostgresAddress
	}
	var hosts, ports []string
	for place := range strings.SplitSeq(places, ",") {
		host, port, ok := splitPlace(place)
		if !ok {
			return nil, errNoPostgresAddress
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	settings["host"], settings["port"], settings["dbname"] = strings.Join(hosts, ","), strings.Join(ports, ","), database
	for pair := range strings.SplitSeq(query, "&") {
		name, value, isPair := strings.Cut(pair, "=")
		if pair != "" && !isPair {
			return nil, errNoPostgresAddress
		}
		if name == "database" {
			name = "dbname"
		}
		settings[name] = value
	}
	return settings.unescape()
}

// escaped are settings whose values hold %-escapes.
type escaped map[string]string

func (e escaped) unescape() (map[string]string, error) {
	settings := map[string]string{}
	for name, text := range e {
		value, err := url.PathUnescape(text)
		if err != nil || strings.Contains(value, "\x00") {
			return nil, errNoPostgresAddress
		}
		if value != "" {
			settings[name] = value
		}
	}
	if !arePorts(settings["port"]) {
		return nil, errNoPostgresAddress
	}
	return settings, nil
}

// splitPlace splits HOST:PORT, of which either may be missing.
func splitPlace(place string) (host, port string, ok bool) {
	inside, isIPv6 := strings.CutPrefix(place, "[")
	if !isIPv6 {
		host, port, _ = strings.Cut(place, ":")
		return host, port, true
	}
	host, port, closed := strings.Cut(inside, "]")
	return host, strings.TrimPrefix(port, ":"), closed
}

func arePorts(list string) bool {
	for port := range strings.SplitSeq(list, ",") {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return false
		}
	}
	return true
}
