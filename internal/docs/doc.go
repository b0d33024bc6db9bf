// Package docs tests what the documentation says against the code: links, names of the environment, reasons.
package docs
