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
			"ENILimitReachedException", "EC2AccessDeniedException", "EC2UnexpectedException", "EFSMountFailureException",
			"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
			"AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException",
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
