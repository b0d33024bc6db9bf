package webhook

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// authorization is the value of the header that every attempt has, empty for none: the route's own or the URL's user.
func authorization(own string, user *url.Userinfo) (string, error) {
	switch {
	case own != "" && user != nil:
		return "", errors.New("there is an authorization beside the URL's user; one of the two is accepted")
	case strings.TrimSpace(own) != own || !httpguts.ValidHeaderFieldValue(own):
		return "", errors.New("authorization is not a header value")
	case user != nil:
		password, _ := user.Password()
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)), nil
	}
	return own, nil
}
