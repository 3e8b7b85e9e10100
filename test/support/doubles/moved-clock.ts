/**
 * Why a test that needs Postgres' timers is skipped: for `skip`. With libfaketime they do not end while a process waits,
 * since within `epoll_wait` the library tells their handler the time of the machine.
 */
export const skipTimersOfPostgres =
  (process.env['LD_PRELOAD']?.includes('faketime') ?? false) && 'Postgres has a moved clock'
