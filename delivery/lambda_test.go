package delivery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

func TestClassifyInvocation(t *testing.T) {
	for reason, codes := range map[delivery.Reason][]string{
		delivery.Throttled: {"TooManyRequestsException", "EC2ThrottledException", "ThrottlingException"},
		delivery.Rejected:  {"InvalidRequestContentException", "RequestTooLargeException", "UnsupportedMediaTypeException"},
		delivery.Target: {
			"ResourceNotFoundException", "ResourceConflictException", "InvalidZipFileException", "InvalidRuntimeException",
			"InvalidSubnetIDException", "InvalidSecurityGroupIDException", "SubnetIPAddressLimitReachedException",
			"ENILimitReachedException", "ENINotReadyException", "EC2AccessDeniedException", "EC2UnexpectedException",
			"EFSIOException", "EFSMountConnectivityException", "EFSMountFailureException", "EFSMountTimeoutException",
			"S3FilesMountConnectivityException", "S3FilesMountFailureException", "S3FilesMountTimeoutException",
			"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
			"ResourceNotReadyException", "SnapStartException", "SnapStartNotReadyException", "SnapStartTimeoutException",
			"SnapStartRegenerationFailureException", "CodeArtifactUserPendingException", "CodeArtifactUserFailedException",
			"CodeArtifactUserDeletedException", "ModeNotSupportedException", "NoPublishedVersionException",
			"RuntimeAliasDeletedException", "RuntimeVersionDeletedException",
			"AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException",
			"RequestExpired",
		},
		delivery.Status: {"ServiceException", "InvalidParameterValueException", "RecursiveInvocationException", "NeverHeardOf", ""},
	} {
		for _, code := range codes {
			want := delivery.Of(reason)
			want.Status, want.Detail = 400, code
			got := delivery.ClassifyInvocation(delivery.Invocation{Status: 400, Code: code}, delivery.Rules{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", code, diff)
			}
		}
	}
}

// TestClassifyInvocationByStatus has answers of proxies before Lambda, and errors with unknown codes.
func TestClassifyInvocationByStatus(t *testing.T) {
	asks, rubbish := http.Header{"Retry-After": {"7"}}, http.Header{"Retry-After": {"soon"}}
	for name, c := range map[string]struct {
		status int
		header http.Header
		want   delivery.Reason
		wait   time.Duration
	}{
		"429":                  {429, nil, delivery.Throttled, 0},
		"503":                  {503, nil, delivery.Status, 0},
		"503 asks for time":    {503, asks, delivery.Throttled, 7 * time.Second},
		"503 asks for rubbish": {503, rubbish, delivery.Status, 0},
		"500 asks for time":    {500, asks, delivery.Status, 7 * time.Second},
		"413":                  {413, asks, delivery.Rejected, 0},
		"415":                  {415, nil, delivery.Rejected, 0},
	} {
		got := delivery.ClassifyInvocation(
			delivery.Invocation{Status: c.status, Code: "ServiceException", Header: c.header}, delivery.Rules{})
		want := delivery.Of(c.want)
		if got.Reason != c.want || got.Charged != want.Charged || got.Settlement != want.Settlement || got.RetryAfter != c.wait {
			t.Errorf("%s: got %+v, want %v after %s", name, got, c.want, c.wait)
		}
	}
}

func TestClassifyInvocationWaits(t *testing.T) {
	a := delivery.Invocation{Status: 429, Code: "TooManyRequestsException", Header: http.Header{"Retry-After": {"9999"}}}
	if got := delivery.ClassifyInvocation(a, delivery.Rules{}).RetryAfter; got != time.Hour {
		t.Errorf("waits %s, want the cap", got)
	}
	a = delivery.Invocation{Status: 200, FunctionError: "Unhandled", ErrorType: "NonRetryableThing", Log: "why"}
	got := delivery.ClassifyInvocation(a, delivery.Rules{})
	if got.Settlement != delivery.Bury || got.Reason != delivery.Rejected || got.Log != "why" || got.Detail != "NonRetryableThing" {
		t.Errorf("got %+v", got)
	}
}
