// libpq, the C library of PostgreSQL's clients. It brings some twenty libraries that nobody else
// needs, so it is loaded when a connection is first asked for.
#pragma once

#include <libpq-fe.h>

#include "tilewright/base/result.h"

namespace tilewright::postgres {

// clang-format off
/// `TW_LIBPQ_FUNCTIONS(X)`: X(name) for each function `PQname` that is used.
#define TW_LIBPQ_FUNCTIONS(X)                                                                      \
  X(backendPID) X(clear) X(connectPoll) X(connectStartParams) X(connectionNeedsPassword) X(conninfo)             \
  X(conninfoFree) X(conninfoParse) X(consumeInput) X(errorMessage) X(finish) X(flush) X(freemem)   \
  X(getResult) X(getisnull) X(getlength) X(getvalue) X(isBusy) X(nfields) X(notifies) X(ntuples)   \
  X(resultErrorField) X(resultStatus) X(sendQuery) X(sendQueryParams) X(setErrorVerbosity)         \
  X(setNoticeProcessor) X(setnonblocking) X(socket) X(status) X(transactionStatus)
// clang-format on

/// Its entry points, under their names without `PQ`.
struct Libpq {
#define TW_LIBPQ_MEMBER(name) decltype(&::PQ##name) name = nullptr;
  TW_LIBPQ_FUNCTIONS(TW_LIBPQ_MEMBER)
#undef TW_LIBPQ_MEMBER
};

/// Loads it the first time: the file that TILEWRIGHT_LIBPQ names, or libpq.so.5. errors: Tool.
Result<const Libpq*> libpq();

}  // namespace tilewright::postgres
