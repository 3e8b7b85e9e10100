// A worker that runs the passes of one turn of a member and kills itself, as `kill -9` does, before or
// after its n-th transaction: `node test/support/crashing-passes.ts <turn> before|after <n>`.
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'
import { tagFacts } from '#shared/org/pipeline/tag-facts.ts'
import { extractFacts } from '#shared/org/pipeline/extract-facts.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile-facts.ts'
import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'

const killProcess = (): never => {
  process.kill(process.pid, 'SIGKILL')
  // SIGKILL takes effect before any other code of this process runs.
  for (;;);
}

/** Wraps a backend so that the process ends before or after its n-th transaction. */
function crashAt(backend: Backend, when: string, n: number): Backend {
  const { postgres } = backend
  let transactions = 0
  return {
    ...backend,
    postgres: {
      ...postgres,
      async transaction(work) {
        const own = ++transactions
        if (when === 'before' && own === n) killProcess()
        const result = await postgres.transaction(work)
        if (when === 'after' && own === n) killProcess()
        return result
      },
    },
  }
}

const [turn = '', when = '', n = ''] = process.argv.slice(2)
const log = createLog('silent', 'test')
const backend = crashAt(await openBackend(readConfig(process.env), log, 'worker'), when, Number(n))
const { rows } = await backend.postgres.query<{ data: OrgExtractJob }>(
  `select data from pgboss.job where name = 'org-extract' and id = $1`,
  [turn],
)
const job = rows[0]!.data
const { signal } = new AbortController()
await extractFacts(backend, job, signal)
await tagFacts(backend, job, signal)
await reconcileFacts(backend, job, signal)
process.exit(3)
