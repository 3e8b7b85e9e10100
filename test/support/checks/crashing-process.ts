// Preloaded into a process of the service, which then kills itself, as `kill -9` does, at a step of one piece of work.
// `KILL_AT` is `<before|after> <n> <command> <id>`: the n-th `commit` of a transaction with the id among its values, or
// the n-th command of MongoDB of that name (only `before`) with the id in it. Ids of which any will do stand between `|`.
import pg from 'pg'
import { commandListeners } from '#shared/storage/mongo/connect.ts'

const [when, nth, command, ids = ''] = (process.env['KILL_AT'] ?? '').split(' ')
let seen = 0

const isOfWork = (sent: unknown): boolean => {
  const text = JSON.stringify(sent) ?? ''
  return ids.split('|').some(id => text.includes(id))
}

const isStep = (): boolean => ++seen === Number(nth)

const killProcess = (): never => {
  process.kill(process.pid, 'SIGKILL')
  // SIGKILL takes effect before any other code of this process runs.
  for (;;);
}

if (command === 'commit') killAtCommit()
else {
  commandListeners.push(({ commandName, command: sent }) => {
    if (commandName === command && isOfWork(sent) && isStep()) killProcess()
  })
}

function killAtCommit(): void {
  type Send = (this: pg.Client, ...args: unknown[]) => unknown
  const prototype = pg.Client.prototype as unknown as { query: Send }
  const { query } = prototype
  /** Connections in a transaction of the work. */
  const ofWork = new WeakSet<pg.Client>()
  prototype.query = function send(this: pg.Client, ...args) {
    const [statement] = args
    if (statement !== 'commit') {
      if (String(statement).startsWith('begin ')) ofWork.delete(this)
      else if (isOfWork(statement)) ofWork.add(this)
      return query.apply(this, args)
    }
    const isLast = ofWork.has(this) && isStep()
    if (isLast && when === 'before') killProcess()
    const sent = query.apply(this, args)
    return isLast ? (sent as Promise<unknown>).then(killProcess) : sent
  }
}
