// Package fakelambda is Lambda's Invoke on a loopback port, for tests: a script answers each call, and the server
// remembers them. Programs reach it through AWS_ENDPOINT_URL_LAMBDA.
package fakelambda

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// Call is one request as Lambda reads it.
type Call struct {
	Number    int // the first is 1
	Function  string
	Qualifier string
	Kind      string            // RequestResponse, Event or DryRun
	Payload   []byte            // byte for byte
	Custom    map[string]string // ClientContext.custom; nil = there was none
	LogType   string
	Header    http.Header
	// Done is closed when the caller is gone.
	Done <-chan struct{}
}

// Answer is what the endpoint answers to a call.
type Answer struct {
	Status        int // 0 = what Lambda answers to a call of this kind that it takes
	Body          string
	FunctionError string // Handled or Unhandled
	Log           string // the end of the function's log, in clear
	Code          string // of an error
	RetryAfter    string
	Reset         bool // the connection is reset in place of an answer
	Cut           bool // the connection breaks inside the body, of which a half was sent
}

// Script answers calls; it may wait, and is called by many goroutines at once.
type Script func(Call) Answer

// Server is a running endpoint.
type Server struct {
	http   *httptest.Server
	script Script

	mu       sync.Mutex
	calls    []Call
	accepted int
	open     int
}

// Start runs an endpoint until the test ends.
func Start(t testing.TB, script Script) *Server {
	t.Helper()
	s := &Server{script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{function}/invocations", s.invoke)
	s.http = httptest.NewUnstartedServer(mux)
	s.http.Config.ConnState = s.count
	s.http.Start()
	t.Cleanup(s.http.Close)
	return s
}

// Environment is the variables, as KEY=value, that make a program call this endpoint.
func (s *Server) Environment() []string {
	return []string{
		"AWS_ENDPOINT_URL_LAMBDA=" + s.http.URL, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
		"AWS_MAX_ATTEMPTS=5", // which must have no effect
	}
}

// Calls are all calls so far, in the order of their arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Accepted is how many connections were made so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Open is how many connections are open now.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Server) count(_ net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.accepted++
		s.open++
	case http.StateClosed, http.StateHijacked:
		s.open--
	case http.StateActive, http.StateIdle:
	}
}

// invoke is https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html.
func (s *Server) invoke(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	call := Call{
		Function: r.PathValue("function"), Qualifier: r.URL.Query().Get("Qualifier"), Kind: r.Header.Get("X-Amz-Invocation-Type"),
		Payload: payload, Custom: custom(r), LogType: r.Header.Get("X-Amz-Log-Type"), Header: r.Header, Done: r.Context().Done(),
	}
	s.mu.Lock()
	call.Number = len(s.calls) + 1
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	s.answer(w, call, s.script(call))
}

func (s *Server) answer(w http.ResponseWriter, call Call, a Answer) {
	if a.Reset || a.Cut {
		hangUp(w, a)
		return
	}
	set := func(name, value string) {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	set("X-Amz-Function-Error", a.FunctionError)
	set("X-Amzn-Errortype", a.Code)
	set("Retry-After", a.RetryAfter)
	if call.LogType == "Tail" {
		set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(a.Log)))
	}
	status := a.Status
	if status == 0 {
		status = map[string]int{"Event": http.StatusAccepted, "DryRun": http.StatusNoContent}[call.Kind]
	}
	if status == 0 {
		status = http.StatusOK
	}
	if status >= 300 && status <= 399 {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = io.WriteString(w, a.Body)
	}
}

func hangUp(w http.ResponseWriter, a Answer) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if a.Cut {
		head := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(2*len(a.Body)) + "\r\n"
		if a.FunctionError != "" {
			head += "X-Amz-Function-Error: " + a.FunctionError + "\r\n"
		}
		_, _ = io.WriteString(conn, head+"\r\n"+a.Body)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && a.Reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func custom(r *http.Request) map[string]string {
	raw, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Amz-Client-Context"))
	if err != nil || len(raw) == 0 {
		return nil
	}
	var c struct {
		Custom map[string]string `json:"custom"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return nil
	}
	return c.Custom
}
