package delivery_test

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

func TestEveryStatus(t *testing.T) {
	targets := map[int]bool{401: true, 403: true, 404: true, 405: true, 407: true, 421: true, 511: true}
	for status := 100; status <= 999; status++ {
		reason, fault := delivery.Status, false
		switch {
		case status >= 200 && status <= 299:
			reason = delivery.OK
		case status >= 300 && status <= 399:
			reason, fault = delivery.Redirect, true
		case targets[status]:
			reason, fault = delivery.Target, true
		case status == 429:
			reason = delivery.Throttled
		case status == 502, status == 503, status == 504:
			fault = true
		}
		want := delivery.Of(reason)
		want.Status, want.TargetFault = status, fault
		if diff := cmp.Diff(want, delivery.Classify(status, nil, delivery.Rules{})); diff != "" {
			t.Errorf("%d (-want +got):\n%s", status, diff)
		}
	}
}

func TestClassify(t *testing.T) {
	type h map[string]string
	narrow := delivery.Rules{Success: []delivery.Range{{Low: 200, High: 200}, {Low: 304, High: 304}}}
	reject := delivery.Rules{Reject: []int{400, 429, 302, 200}}
	ack := delivery.Rules{RequireAck: true}
	for name, c := range map[string]struct {
		status int
		header h
		rules  delivery.Rules
		reason delivery.Reason
		wait   time.Duration
	}{
		"success range":               {200, nil, narrow, delivery.OK, 0},
		"success beyond 2xx":          {304, nil, narrow, delivery.OK, 0},
		"2xx outside success":         {202, nil, narrow, delivery.Status, 0},
		"reject list":                 {400, nil, reject, delivery.Rejected, 0},
		"reject before throttle":      {429, h{"Retry-After": "5"}, reject, delivery.Rejected, 0},
		"reject before redirect":      {302, nil, reject, delivery.Rejected, 0},
		"success before reject":       {200, nil, reject, delivery.OK, 0},
		"not on the reject list":      {422, nil, reject, delivery.Status, 0},
		"no retry":                    {500, h{"Dispatch-No-Retry": "true"}, delivery.Rules{}, delivery.Rejected, 0},
		"no retry, odd case, spaces":  {404, h{"Dispatch-No-Retry": " TRUE\t"}, delivery.Rules{}, delivery.Rejected, 0},
		"no retry on a redirect":      {302, h{"Dispatch-No-Retry": "true"}, delivery.Rules{}, delivery.Rejected, 0},
		"no retry on 429":             {429, h{"Dispatch-No-Retry": "true", "Retry-After": "5"}, delivery.Rules{}, delivery.Rejected, 0},
		"no retry on a success":       {204, h{"Dispatch-No-Retry": "true"}, delivery.Rules{}, delivery.OK, 0},
		"no retry: false":             {500, h{"Dispatch-No-Retry": "false"}, delivery.Rules{}, delivery.Status, 0},
		"no retry: 1":                 {500, h{"Dispatch-No-Retry": "1"}, delivery.Rules{}, delivery.Status, 0},
		"no retry: empty":             {500, h{"Dispatch-No-Retry": ""}, delivery.Rules{}, delivery.Status, 0},
		"ack":                         {200, h{"Dispatch-Ack": "OK "}, ack, delivery.OK, 0},
		"ack absent":                  {200, nil, ack, delivery.Target, 0},
		"ack wrong":                   {200, h{"Dispatch-Ack": "no"}, ack, delivery.Target, 0},
		"ack absent, no retry":        {200, h{"Dispatch-No-Retry": "true"}, ack, delivery.Target, 0},
		"ack on a failure":            {500, h{"Dispatch-Ack": "ok"}, ack, delivery.Status, 0},
		"429 and seconds":             {429, h{"Retry-After": "120"}, delivery.Rules{}, delivery.Throttled, 2 * time.Minute},
		"429 and rubbish":             {429, h{"Retry-After": "soon"}, delivery.Rules{}, delivery.Throttled, 0},
		"503 and seconds":             {503, h{"Retry-After": "7"}, delivery.Rules{}, delivery.Throttled, 7 * time.Second},
		"503 and zero":                {503, h{"Retry-After": "0"}, delivery.Rules{}, delivery.Throttled, 0},
		"503 and rubbish":             {503, h{"Retry-After": "soon"}, delivery.Rules{}, delivery.Status, 0},
		"503 and a past date":         {503, h{"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:38 GMT"}, delivery.Rules{}, delivery.Status, 0},
		"500 keeps its reason":        {500, h{"Retry-After": "9"}, delivery.Rules{}, delivery.Status, 9 * time.Second},
		"404 keeps its reason":        {404, h{"Retry-After": "9"}, delivery.Rules{}, delivery.Target, 9 * time.Second},
		"301 keeps its reason":        {301, h{"Retry-After": "9"}, delivery.Rules{}, delivery.Redirect, 9 * time.Second},
		"the route's own cap":         {429, h{"Retry-After": "9999"}, delivery.Rules{MaxRetryAfter: time.Minute}, delivery.Throttled, time.Minute},
		"a success asks for no delay": {200, h{"Retry-After": "9"}, delivery.Rules{}, delivery.OK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for k, v := range c.header {
				header.Set(k, v)
			}
			got := delivery.Classify(c.status, header, c.rules)
			if got.Reason != c.reason || got.RetryAfter != c.wait || got.Status != c.status {
				t.Errorf("got %v, %v, %d; want %v, %v", got.Reason, got.RetryAfter, got.Status, c.reason, c.wait)
			}
			if want := delivery.Of(c.reason); got.Settlement != want.Settlement || got.Charged != want.Charged {
				t.Errorf("got %v charged=%v, want %v charged=%v", got.Settlement, got.Charged, want.Settlement, want.Charged)
			}
		})
	}
}

func TestRedirectNamesTheOriginOnly(t *testing.T) {
	for location, want := range map[string]string{
		"https://user:pw@b.example:8443/secret?token=x#y": "to https://b.example:8443",
		"/moved?token=x": "", "//b.example/x": "", "": "", "http://[::1": "", "mailto:a@b": "",
	} {
		got := delivery.Classify(308, http.Header{"Location": {location}}, delivery.Rules{}).Detail
		if got != want {
			t.Errorf("Location %q: detail %q, want %q", location, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 500, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).UTC().Format(http.TimeFormat) }
	const hour = time.Hour
	for name, c := range map[string]struct {
		value, date string
		now         time.Time
		want        time.Duration
		asked       bool
	}{
		"seconds":                     {"5", "", now, 5 * time.Second, true},
		"zero":                        {"0", "", now, 0, true},
		"spaces":                      {"  5 ", "", now, 5 * time.Second, true},
		"leading zeros":               {"0000000000000000000000000000005", "", now, 5 * time.Second, true},
		"the cap":                     {"3600", "", now, hour, true},
		"above the cap":               {"3601", "", now, hour, true},
		"would overflow a Duration":   {strconv.Itoa(math.MaxInt64/int(time.Second) + 1), "", now, hour, true},
		"would overflow an int64":     {"9223372036854775808", "", now, hour, true},
		"a thousand digits":           {strings.Repeat("9", 1000), "", now, hour, true},
		"negative":                    {"-5", "", now, 0, false},
		"signed":                      {"+5", "", now, 0, false},
		"a fraction":                  {"5.5", "", now, 0, false},
		"a unit":                      {"5s", "", now, 0, false},
		"hex":                         {"0x10", "", now, 0, false},
		"arabic digits":               {"٥", "", now, 0, false},
		"two values":                  {"5, 10", "", now, 0, false},
		"empty":                       {"", "", now, 0, false},
		"words":                       {"soon", "", now, 0, false},
		"a date by Date":              {date(30 * time.Minute), date(25 * time.Minute), now, 5 * time.Minute, true},
		"a date by now":               {date(5 * time.Minute), "", now.Truncate(time.Second), 5 * time.Minute, true},
		"a date, Date is rubbish":     {date(5 * time.Minute), "noon", now.Truncate(time.Second), 5 * time.Minute, true},
		"a date, no clock":            {date(5 * time.Minute), "", time.Time{}, 0, false},
		"a date far away":             {"Fri, 31 Dec 9999 23:59:59 GMT", date(0), now, hour, true},
		"a date at once":              {date(0), date(0), now, 0, true},
		"a past date":                 {date(-time.Second), date(0), now, 0, false},
		"a past date, a fast clock":   {date(5 * time.Minute), date(time.Hour), now, 0, false},
		"RFC 850":                     {"Sunday, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:07 GMT", now, 30 * time.Second, true},
		"asctime":                     {"Sun Nov  6 08:49:37 1994", "Sun Nov  6 08:49:07 1994", now, 30 * time.Second, true},
		"RFC 3339 is not a HTTP date": {"2026-08-01T12:05:00Z", date(0), now, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
			got, asked := delivery.RetryAfter(header, c.now, 0)
			if got != c.want || asked != c.asked {
				t.Errorf("got %v, %v; want %v, %v", got, asked, c.want, c.asked)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"5", "-1", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "", "\x00", "1e9", " 7 "} {
		f.Add(value, "Sun, 06 Nov 1994 08:49:37 GMT", int64(60))
		f.Add(value, "", int64(0))
	}
	f.Fuzz(func(t *testing.T, value, date string, limit int64) {
		header := http.Header{"Retry-After": {value}, "Date": {date}}
		bound := time.Duration(limit)
		if bound <= 0 {
			bound = time.Hour
		}
		now := time.Unix(1_800_000_000, 0)
		got, asked := delivery.RetryAfter(header, now, time.Duration(limit))
		if got < 0 || got > bound || (!asked && got != 0) {
			t.Fatalf("RetryAfter(%q, Date %q, limit %d) = %v, %v", value, date, limit, got, asked)
		}
		n, err := strconv.ParseUint(value, 10, 32)
		if want := min(time.Duration(n)*time.Second, bound); err == nil && (!asked || got != want) {
			t.Fatalf("RetryAfter(%q) = %v, %v; want %v", value, got, asked, want)
		}
		for _, status := range []int{429, 500, 503} {
			o := delivery.Classify(status, header, delivery.Rules{Now: now, MaxRetryAfter: time.Duration(limit)})
			if o.RetryAfter != got || o.Settlement != delivery.Abandon {
				t.Fatalf("Classify(%d) = %+v, RetryAfter alone %v", status, o, got)
			}
		}
	})
}
