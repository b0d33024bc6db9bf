// Package redisconn makes every Redis client that queuehook uses, and says in plain words why one does not work.
//
// The clients repeat nothing by themselves: a repeated lease or settlement would be carried out twice after a lost
// reply, so only the code that knows which reply was lost may send again. (A cluster client follows redirections and may
// repeat commands that are no scripts; those of queuehook do no harm twice.) They keep to what Redis 6.2 knows.
package redisconn
