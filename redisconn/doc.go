// Package redisconn makes every Redis client that queuehook uses, and says in plain words why one does not work.
//
// The clients repeat nothing by themselves. After a lost reply a repeated lease or settlement would be carried out twice,
// so only the code that knows which reply was lost may send again. (A cluster client follows redirections, and may repeat
// commands that are not scripts; those of queuehook do no harm twice.) The clients use nothing that Redis 6.2 lacks.
package redisconn
