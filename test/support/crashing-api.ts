// An API that kills itself, as `kill -9` does, at one point of a commit: `node test/support/crashing-api.ts
// <point>`. It sends its port to its parent process.
import type { AddressInfo } from 'node:net'
import { createApp } from '#api/edge/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'

/** The step of a commit after which the process ends. */
export type CrashPoint = 'fence' | 'entries' | 'sources' | 'settled'

const killProcess = (): never => {
  process.kill(process.pid, 'SIGKILL')
  // SIGKILL takes effect before any other code of this process runs.
  for (;;);
}

/** Wraps a backend so that the process ends at the point. */
function crashAt(point: CrashPoint, backend: Backend): Backend {
  const { mongo, postgres } = backend
  let transactions = 0
  const deadly = { fence: 'insertMany', entries: 'updateMany', sources: 'aggregate', settled: '' }
  const memories = new Proxy(mongo.memories, {
    get(target, name) {
      if (name === deadly[point]) return killProcess
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return {
    ...backend,
    mongo: { ...mongo, memories },
    postgres: {
      ...postgres,
      async transaction(work) {
        const result = await postgres.transaction(work)
        // The first transaction of a commit is the fence, the second settles it.
        if (point === 'settled' && ++transactions === 2) killProcess()
        return result
      },
    },
  }
}

if (import.meta.main) {
  const backend = await openBackend(readConfig(process.env), createLog('silent', 'test'), 'web')
  const app = createApp(crashAt(process.argv[2] as CrashPoint, backend))
  const server = createHttpServer(app)
  server.listen(0, '127.0.0.1', () =>
    process.send?.({ port: (server.address() as AddressInfo).port }),
  )
}
