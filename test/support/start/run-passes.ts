// Runs the passes of one turn of a member, as a worker does, until crashing-process.ts ends it:
// `node test/support/start/run-passes.ts <turn>`.
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'
import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'
import { extractFacts } from '#shared/org/pipeline/extract-facts.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile-facts.ts'
import { tagFacts } from '#shared/org/pipeline/tag-facts.ts'

const backend = await openBackend(readConfig(process.env), createLog('silent', 'test'), 'worker')
const { rows } = await backend.postgres.query<{ data: OrgExtractJob }>(
  `select data from pgboss.job where name = 'org-extract' and id = $1`,
  [process.argv[2]],
)
const { signal } = new AbortController()
for (const pass of [extractFacts, tagFacts, reconcileFacts])
  await pass(backend, rows[0]!.data, signal)
process.exit(3)
