import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'

/* Files that know times, with the clock of all processes and databases on another day and in another zone. */

/** Preloaded: Debian's `libfaketime` moves the wall clock of a process and of all that it starts. */
const [library] = globSync('/usr/lib/*/faketime/libfaketime.so.1')

const files = [
  'test/upgrade/upgrade.test.ts',
  'test/api/edge/budgets.test.ts',
  'test/api/login/login.test.ts',
  'test/api/routes/account.test.ts',
  'test/api/routes/account/retention.test.ts',
  'test/api/routes/account/usage-report.test.ts',
  'test/api/routes/memory/expiry.test.ts',
  'test/api/routes/operator.test.ts',
  'test/api/routes/orgs/overview.test.ts',
  'test/api/routes/orgs/pipeline.test.ts',
  'test/api/routes/queues.test.ts',
  'test/console/day-buckets.test.ts',
  'test/scripts/clients/demo/texts.test.ts',
  'test/shared/search/query/parse-query.test.ts',
  'test/shared/storage/queue/queue.test.ts',
  'test/shared/vault/delete/purge-expired.test.ts',
]

const dayMs = 86_400_000
const inDays = (days: number): number => Date.now() + days * dayMs

/** Runs the files from a moment on. @returns what is printed, and the exit code. */
async function runAt(moment: number, zone: string): Promise<{ output: string; code: number }> {
  const { DATABASE_URL: _, MONGODB_URI: __, ...environment } = process.env
  const folder = mkdtempSync(join(tmpdir(), 'clock-'))
  // Postgres may run as another user.
  chmodSync(folder, 0o755)
  // With --costs the services end with the run.
  const run = spawn(process.execPath, ['test/setup/run.ts', '--costs', ...files], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...environment,
      TZ: zone,
      TMPDIR: folder,
      LD_PRELOAD: library,
      FAKETIME: `+${Math.round((moment - Date.now()) / 1000)}`,
      // Timers and the times of files stay; a wait of the MongoDB engine would end at once otherwise.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_FORCE_MONOTONIC_FIX: '0',
      FAKETIME_DISABLE_SHM: '1',
      NO_FAKE_STAT: '1',
    },
  })
  const closed = once(run, 'close') as Promise<[number]>
  const output = await text(run.stdout)
  const [code] = await closed
  rmSync(folder, { recursive: true, force: true })
  return { output, code }
}

const needed = library === undefined && 'needs the Debian package faketime'

for (const [name, moment, zone] of [
  ['33 days ahead, 13 hours ahead of UTC', inDays(33), 'Pacific/Apia'],
  ['from 31 December to 1 January', Date.UTC(2029, 11, 31, 23, 59, 45), 'Asia/Kathmandu'],
  ['on 29 February', Date.UTC(2032, 1, 29, 7), 'America/Los_Angeles'],
] as const) {
  t.test(`files that know times pass ${name}`, { skip: needed }, async t => {
    const { output, code } = await runAt(moment, zone)
    t.match(output, /^[1-9]\d+ passed, 0 failed/m)
    if (!t.equal(code, 0)) t.comment(output)
  })
}
