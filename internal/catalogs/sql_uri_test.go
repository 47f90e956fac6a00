package catalogs

import (
	"strings"
	"testing"
)

// The grammar is SQLAlchemy's: what is percent-encoded in it is decoded once.
func TestServerURIs(t *testing.T) {
	for _, tt := range []struct{ uri, user, password, host, database, address string }{
		{"postgresql://u:p@h:5433/d", "u", "p", "h", "d", "postgresql://h:5433/d"},
		{"postgres://h/d", "", "-", "h", "d", "postgresql://h/d"},
		{"postgresql+psycopg2://u@h/d?sslmode=disable", "u", "-", "h", "d", "postgresql://h/d"},
		{"postgresql+psycopg://u:@h/d", "u", "", "h", "d", "postgresql://h/d"},
		{"mysql+pymysql://a%40b%3Ac:p%40%2F%3A%25%23%3F%C3%BC%20+@h/d", "a@b:c", "p@/:%#?ü +", "h", "d", "mysql://h/d"},
		{"mariadb+pymysql://u:p/#?%zz%@h/d%20e?charset=utf8mb4", "u", "p/#?%zz%", "h", "d e", "mysql://h/d%20e"},
		{"postgresql://u:p@[::1]:5433/d", "u", "p", "::1", "d", "postgresql://[::1]:5433/d"},
		{"postgresql://u:p?hunter2@h/d", "u", "p?hunter2", "h", "d", "postgresql://h/d"},
		{"postgresql:///d?host=/run/pg", "", "-", "", "d", "postgresql:///d"},
		{"sql://postgresql://u:p@h/d", "u", "p", "h", "d", "postgresql://h/d"},
	} {
		u, err := serverOf(tt.uri)
		if err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		password := "-"
		if u.password != nil {
			password = *u.password
		}
		if u.user != tt.user || password != tt.password || u.host != tt.host || u.database != tt.database || u.address() != tt.address {
			t.Errorf("%s: got %q, %q, %q, %q, %s", tt.uri, u.user, password, u.host, u.database, u.address())
		}
		if tt.password != "-" && tt.password != "" && strings.Contains(withoutSecrets(tt.uri), tt.password) && tt.password != "p" {
			t.Errorf("%s is shown as %s", tt.uri, withoutSecrets(tt.uri))
		}
	}
}

// What the drivers are handed is what the uri says, whatever letters are in it.
func TestDriverConfiguration(t *testing.T) {
	const password = "p@ss:w/rd%40 #?ü'\\"
	u, err := serverOf("postgresql+psycopg2://odd%40user:p%40ss%3Aw%2Frd%2540%20%23%3F%C3%BC'%5C@h:5433/a%20b?sslmode=disable&application_name=x&client_encoding=utf8")
	if err != nil {
		t.Fatal(err)
	}
	pg, err := u.postgres()
	if err != nil {
		t.Fatal(err)
	}
	if pg.User != "odd@user" || pg.Password != password || pg.Host != "h" || pg.Port != 5433 || pg.Database != "a b" || pg.TLSConfig != nil || pg.ConnectTimeout != connectTimeout || pg.RuntimeParams["application_name"] != "x" {
		t.Errorf("got %q, %q, %q, %d, %q, %s", pg.User, pg.Password, pg.Host, pg.Port, pg.Database, pg.ConnectTimeout)
	}
	if u, err = serverOf("mysql+pymysql://odd%40user:p%40ss%3Aw%2Frd%2540%20%23%3F%C3%BC'%5C@h/a%20b?charset=utf8mb4&connect_timeout=5"); err != nil {
		t.Fatal(err)
	}
	my, err := u.mysql()
	if err != nil {
		t.Fatal(err)
	}
	if my.User != "odd@user" || my.Passwd != password || my.Addr != "h:3306" || my.DBName != "a b" || my.Timeout.Seconds() != 5 {
		t.Errorf("got %q, %q, %q, %q, %s", my.User, my.Passwd, my.Addr, my.DBName, my.Timeout)
	}
	for uri, says := range map[string]string{
		"postgresql://u:hunter2@h/d?sslmode=hunter2":    "sslmode",
		"postgresql://u:hunter2@h/d?pool_size=hunter2":  `"pool_size" of the uri is not supported`,
		"mysql://u:hunter2@h/d?ssl_ca=/no/such/file":    `"ssl_ca" of the uri: open /no/such/file`,
		"mysql://u:hunter2@h/d?connect_timeout=hunter":  "want a number of seconds",
		"mysql://u:hunter2@h/d?ssl_verify_cert=hunter2": `"ssl_verify_cert" of the uri: it is not supported`,
	} {
		u, err := serverOf(uri)
		if err != nil {
			t.Fatal(err)
		}
		if db, err := u.connector(); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, %v, want %q", uri, db, err, says)
		}
	}
}
