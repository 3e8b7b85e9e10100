import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { release } from '#scripts/release.ts'
import { hashKey } from '#shared/access/key.ts'
import type { Config } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { sendExchanges, waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import {
  processEnvironment,
  startProcess,
  type ReadyProcess,
} from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readReleaseFacts, restoreDump } from '#test/upgrade/release-dump.ts'

/** The commit of 1.0.0. */
const released = 'ad3f88f688b7565c8e4a94c06b8da83b4f539c52'
const root = process.cwd()
const isHere = spawnSync('git', ['cat-file', '-e', `${released}^{commit}`]).status === 0
const skip = !isHere && 'the history of this checkout does not reach back to 1.0.0'
/** Rows of the tables that a migration of 1.1.0 rewrites; more are given by hand to measure. */
const rows = Number(process.env.UPGRADE_ROWS ?? 2_000)
const exchangesBetween = 60

t.test(
  '1.0.0 is upgraded and put back while requests run: none fails, none is lost',
  { skip },
  async t => {
    const old = layOut(t)
    const config = await createTestConfig(t)
    await restoreDump(config)
    const { key } = readReleaseFacts().pending
    const env = processEnvironment(config)
    const start = (kind: 'web' | 'worker', tree: string): Promise<ReadyProcess> =>
      startProcess(t, kind === 'web' ? 'node api/index.ts' : 'node workers/index.ts', env, tree)

    // The dump has no indexes of MongoDB: the release step of 1.0.0 makes them.
    execFileSync(process.execPath, ['scripts/migrate.ts'], { cwd: old, env })
    let serving: ReadyProcess[] = await Promise.all([start('web', old), start('web', old)])
    let worker = await start('worker', old)
    let turn = 0
    const base = (): string => serving[turn++ % serving.length]!.base
    const journal = sendExchanges(base, key, { lanes: 3, pauseMs: 5 })
    const reader = readAlong(base, key)
    const going = async (what: string): Promise<void> => {
      const before = journal.acknowledged.size
      const reads = reader.statuses.get(200) ?? 0
      const isOn = (): boolean => {
        const seen = [...journal.statuses.keys(), ...reader.statuses.keys()]
        if (seen.some(status => status !== 202 && status !== 200)) {
          throw new Error(`${what}: ${seen.join(' ')} ${reader.refusal()}`)
        }
        return (
          journal.acknowledged.size >= before + exchangesBetween &&
          (reader.statuses.get(200) ?? 0) >= reads + exchangesBetween / 4
        )
      }
      await waitUntil(what, isOn)
    }
    /** Replaces the processes one by one: the new one is ready before the old one gets no more requests. */
    const replace = async (tree: string): Promise<void> => {
      for (const leaving of serving) {
        const next = await start('web', tree)
        serving = [...serving.filter(one => one !== leaving), next]
        await end(t, leaving)
      }
      const leaving = worker
      worker = await start('worker', tree)
      await end(t, leaving)
    }

    await going('1.0.0 serves')
    await fill(config, rows)
    reader.reset()
    const begun = performance.now()
    await release(config, createLog('silent', 'test'))
    const took = Math.round(performance.now() - begun)
    if (process.env.UPGRADE_ROWS) {
      const slowest = reader.slowestMs()
      process.stderr.write(`${rows} rows: release ${took} ms, slowest search ${slowest} ms\n`)
    }
    await going('1.0.0 serves on the new schema')
    await replace(root)
    await going('this version serves')
    await replace(old)
    await going('1.0.0 serves again, on what this version wrote')
    await journal.stop()
    await reader.stop()
    t.same([...journal.statuses.keys()], [202], 'every exchange was accepted')
    t.same([...reader.statuses.keys()], [200], 'every search was answered')

    const backend = await createTestBackend(t, { config })
    await waitUntilSettled(backend)
    const { rows: keys } = await backend.postgres.query<{ vault: string }>(
      'select vault from memory_keys where hash = $1',
      [hashKey(config.keyPepper, key)],
    )
    const documents = await backend.mongo.memories.find({ vault: keys[0]!.vault }).toArray()
    const times = new Map<string, number>()
    for (const { text } of documents) times.set(text, (times.get(text) ?? 0) + 1)
    t.same(
      [...journal.acknowledged].filter(text => times.get(text) !== 1),
      [],
      'each is stored once',
    )
    const { rows: dead } = await backend.postgres.query(
      `select id from pgboss.job where name like '%.dead'`,
    )
    t.same(dead, [], 'no job was given up')
  },
)

async function end(t: Test, leaving: ReadyProcess): Promise<void> {
  leaving.kill('SIGTERM')
  t.same(await leaving.exited, { code: 0, signal: null }, 'a process that leaves ends its work')
}

/** Searches, one after the other, until it is stopped. */
function readAlong(base: () => string, key: string) {
  const statuses = new Map<number, number>()
  const stopping = new AbortController()
  let slowest = 0
  let refusal = ''
  const searched = (async () => {
    while (!stopping.signal.aborted) {
      const begun = performance.now()
      const status = await fetch(`${base()}/v1/memory/search`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-memory-key': key },
        body: JSON.stringify({ query: 'which exchange waits?', limit: 3 }),
      }).then(
        async response => {
          const text = await response.text()
          if (response.status !== 200) refusal = text
          return response.status
        },
        (error: Error) => {
          refusal = error.message
          return 0
        },
      )
      slowest = Math.max(slowest, performance.now() - begun)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })()
  return {
    statuses,
    /** What was said of the last search that was not answered. */
    refusal: () => refusal,
    /** The slowest search in milliseconds since the last `reset`. */
    slowestMs: () => Math.round(slowest),
    reset: () => void (slowest = 0),
    async stop() {
      stopping.abort()
      await searched
    },
  }
}

/** Rows of 1.0.0 in the tables that a migration rewrites. */
async function fill({ databaseUrl }: Config, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(
      `insert into usage_daily (key_hash, day, model, requests, input_tokens, output_tokens, memory_tokens)
       select k.hash, date '2020-01-01' + (n / 50), 'model-' || n % 50, 1, 1, 1, 1
       from generate_series(1, $1::int) n, (select hash from memory_keys limit 1) k`,
      [count],
    )
    await client.query(
      `insert into call_traces (id, vault, epoch, session_epoch, expires_at, trace)
       select gen_random_uuid(), v.id, 1, 1, now() + interval '7 days', '{"status":"recalled","model":"m"}'
       from generate_series(1, $1::int) n, (select id from vaults limit 1) v`,
      [count],
    )
  } finally {
    await client.end()
  }
}

/** The files of 1.0.0, with the packages of this checkout: those that it uses are the same. */
function layOut(t: Test): string {
  const tree = mkdtempSync(join(tmpdir(), 'vault-1.0.0-'))
  t.teardown(() => rmSync(tree, { recursive: true, force: true }))
  const archive = execFileSync('git', ['archive', released], { cwd: root, maxBuffer: 1 << 28 })
  execFileSync('tar', ['-x', '-C', tree], { input: archive })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}
