import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { readCredentials } from '#scripts/credentials.ts'
import {
  Faults,
  pauseBetween,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { readRunningServices, startServices } from '#scripts/services/services.ts'

/** A start that takes longer on a busy machine is still one that ends. */
const startMs = 120_000
const killsMost = 3
/** A first start takes about this long; most kills come before its end. */
const tornMs = 4_000

type Installation = { dataDir: string; env: NodeJS.ProcessEnv }

/**
 * `npm start` in a new folder, killed at random moments: while it makes the databases, migrates, writes its secrets,
 * makes the first account, starts its processes. The start that is let through has the schema of one that was never
 * killed, its key works, and what it stored is there after the next kills.
 */
export async function proveTornStart(context: SectionContext): Promise<SectionResult> {
  const { cluster, folder, ms, random } = context
  const faults = new Faults()
  const expected = await describeSchema(cluster.environment.DATABASE_URL!)
  const figures = { installations: 0, kills: 0, failed: 0, lost: 0, schemas: 0 }
  const until = Date.now() + ms
  while (figures.installations === 0 || Date.now() < until) {
    const installation = newInstallation(join(folder, `torn-${figures.installations++}`))
    const stored: string[] = []
    // New, then with what the first whole start has left.
    for (let life = 0; life < 2; life++) {
      figures.kills += await tearStarts(installation, random)
      const problem = await useWholeStart(installation, stored, expected)
      if (problem === null) continue
      figures[problem.kind]++
      faults.add(problem.text)
      break
    }
    await stopLeftServers(installation)
  }
  return {
    figures: [
      { name: 'new folders', value: figures.installations },
      { name: 'starts killed', value: figures.kills },
      { name: 'starts that failed after that', value: figures.failed, most: 0 },
      { name: 'schemas unlike that of a whole start', value: figures.schemas, most: 0 },
      { name: 'exchanges lost', value: figures.lost, most: 0 },
    ],
    faults: faults.first,
  }
}

function newInstallation(dataDir: string): Installation {
  const { DATABASE_URL: _postgres, MONGODB_URI: _mongo, ...rest } = process.env
  const own = { DATA_DIR: dataDir, PORT: '0', EMBEDDINGS: 'local', NODE_OPTIONS: '' }
  return { dataDir, env: { ...rest, ...own } }
}

/** A killed start leaves Postgres running; the next one takes it over, and this ends it. */
async function stopLeftServers({ dataDir }: Installation): Promise<void> {
  const services = await startServices({ dataDir, log: () => {} }).catch(() => null)
  await services?.stop()
}

/** @returns how many starts were killed */
async function tearStarts(installation: Installation, random: () => number): Promise<number> {
  const kills = 1 + Math.floor(random() * killsMost)
  for (let n = 0; n < kills; n++) {
    const child = startService(installation, 'ignore')
    await pauseBetween(0, tornMs, random)
    await endWith(child, 'SIGKILL')
  }
  return kills
}

type Problem = { kind: 'failed' | 'lost' | 'schemas'; text: string }

/** Starts once more and looks at what is there. @returns what is wrong */
async function useWholeStart(
  installation: Installation,
  stored: string[],
  expectedSchema: string,
): Promise<Problem | null> {
  const { dataDir } = installation
  const child = startService(installation, 'pipe')
  try {
    const output = await waitUntilReady(child)
    const { base_url: baseUrl, memory_key: key } = readCredentials(dataDir) ?? {}
    if (!baseUrl || !key || !output.includes(baseUrl))
      return { kind: 'failed', text: `${dataDir} did not start: ${output}` }
    const { databaseUrl } = readRunningServices(dataDir)!
    if ((await describeSchema(databaseUrl)) !== expectedSchema)
      return { kind: 'schemas', text: `${dataDir} has another schema than a whole start` }
    const content = `exchange ${stored.length} of ${dataDir}`
    const answer = await send(`${baseUrl}/v1/memory/ingest?wait=true`, key, {
      messages: [{ role: 'user', content }],
    })
    if (answer.status !== 200)
      return { kind: 'failed', text: `${answer.status} ${answer.text} to ${content}` }
    stored.push(content)
    const { text } = await send(`${baseUrl}/v1/memory/export`, key)
    const lost = stored.filter(one => !text.includes(JSON.stringify(one)))
    return lost.length === 0 ? null : { kind: 'lost', text: `lost: ${lost.join(', ')}` }
  } finally {
    await endWith(child, 'SIGTERM')
  }
}

function startService({ env }: Installation, output: 'pipe' | 'ignore'): ChildProcess {
  return spawn(process.execPath, ['scripts/start.ts'], { env, stdio: ['ignore', output, output] })
}

/** @returns what it printed until it was ready, ended, or took too long */
async function waitUntilReady(child: ChildProcess): Promise<string> {
  let output = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  const onData = (chunk: Buffer): void => {
    output += chunk.toString()
    if (output.includes('http://')) resolve()
  }
  child.stdout?.on('data', onData)
  child.stderr?.on('data', onData)
  child.once('exit', () => resolve())
  const timer = setTimeout(resolve, startMs)
  await promise
  clearTimeout(timer)
  return output
}

async function endWith(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

async function send(
  url: string,
  key: string,
  body?: object,
): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  })
  return { status: response.status, text: await response.text() }
}

/** Migrations, columns, indexes and constraints of a database of the service. */
async function describeSchema(databaseUrl: string): Promise<string> {
  const postgres = openPostgres(databaseUrl, { max: 1, onError: () => {} })
  try {
    const { rows } = await postgres.query<{ line: string }>(
      `select format('column %s.%s.%s %s %s %s', table_schema, table_name, column_name, data_type,
                     is_nullable, column_default) as line
       from information_schema.columns where table_schema in ('public', 'pgboss')
       union all select 'index ' || indexdef from pg_indexes where schemaname in ('public', 'pgboss')
       union all select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
       from pg_constraint where connamespace in ('public'::regnamespace, 'pgboss'::regnamespace)
       union all select 'queue ' || name from pgboss.queue
       order by line`,
    )
    return rows.map(({ line }) => line).join('\n')
  } finally {
    await postgres.close()
  }
}
