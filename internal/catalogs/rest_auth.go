package catalogs

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An authManager is how an auth block of PyIceberg's configuration is done here: what it needs of the block named
// after its type, and the properties that it comes to. Those named by the user beside the block do not count, as
// with PyIceberg.
type authManager struct {
	needs []string
	done  func(block map[string]string) map[string]string
}

// authManagers are those of PyIceberg that can be done.
var authManagers = map[string]authManager{
	"noop": {done: func(map[string]string) map[string]string { return nil }},
	"basic": {[]string{"username", "password"}, func(b map[string]string) map[string]string {
		return map[string]string{"header.authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(b["username"]+":"+b["password"]))}
	}},
	"oauth2": {[]string{"client_id", "client_secret", "token_url"}, func(b map[string]string) map[string]string {
		return map[string]string{"credential": b["client_id"] + ":" + b["client_secret"], "oauth2-server-uri": b["token_url"], "scope": b["scope"]}
	}},
	"legacyoauth2": {nil, func(b map[string]string) map[string]string {
		return map[string]string{"credential": b["credential"], "token": b["initial_token"], "oauth2-server-uri": b["auth_url"]}
	}},
}

// authRefused are those that cannot, and what to do.
var authRefused = map[string]string{
	"google": "get a token by gcloud auth print-access-token, and give it as token",
	"entra":  "get a token by az account get-access-token, and give it as token",
	"custom": "it names Python code; give token, credential or header.authorization",
}

// authenticated are properties with those that an auth block comes to in its place. Its errors name no value.
func authenticated(p map[string]string) (map[string]string, error) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(p)), func(key string) bool { return strings.HasPrefix(key, "auth.") }) {
		return p, nil
	}
	name := strings.ToLower(p["auth.type"])
	if name == "" {
		return nil, fmt.Errorf("auth.type: an auth block needs a type, %s", quoted(slices.Sorted(maps.Keys(authManagers))))
	}
	manager, ok := authManagers[name]
	if cure, refused := authRefused[name]; refused {
		return nil, fmt.Errorf("auth.type: %q is not supported: %s", name, cure)
	} else if !ok {
		return nil, fmt.Errorf("auth.type: %q is not known: want one of %s", name, quoted(slices.Sorted(maps.Keys(authManagers))))
	}
	block := map[string]string{}
	out := map[string]string{}
	for key, value := range p {
		if field, ok := strings.CutPrefix(key, "auth."+name+"."); ok {
			block[strings.ReplaceAll(field, "-", "_")] = value // as a variable of the environment has it
		} else if !strings.HasPrefix(key, "auth.") {
			out[key] = value
		}
	}
	for _, field := range manager.needs {
		if block[field] == "" {
			return nil, fmt.Errorf("auth.%s.%s is missing, which auth.type %s needs", name, field, name)
		}
	}
	for _, key := range []string{"token", "credential"} {
		delete(out, key)
	}
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.EqualFold(key, "header.authorization") })
	for key, value := range manager.done(block) {
		if value != "" {
			out[key] = value
		}
	}
	return out, nil
}
