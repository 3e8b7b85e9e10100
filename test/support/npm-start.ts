import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { clientOf, type Client } from '#test/support/api.ts'
import { until } from '#test/support/until.ts'

export type Started = {
  child: ChildProcess
  output: () => string
  credentials: { base_url: string; memory_key: string; admin_key: string }
  client: Client
  exit: Promise<number | null>
}

const { DATABASE_URL: _postgres, MONGODB_URI: _mongodb, ...rest } = process.env

/** The environment of this test without its databases. */
export const plain = rest

/**
 * Runs `npm start`'s program, or another command that does, until it says that it is ready. What still
 * runs when the test ends is killed.
 */
export async function start(
  t: Test,
  dataDir: string,
  env: Record<string, string> = {},
  command: readonly [string, ...string[]] = [process.execPath, 'scripts/start.ts'],
): Promise<Started> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    env: { ...plain, DATA_DIR: dataDir, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  child.stdout.on('data', chunk => (said += chunk))
  child.stderr.on('data', chunk => (said += chunk))
  const exit = new Promise<number | null>(resolve => child.once('exit', resolve))
  t.teardown(() => child.kill('SIGKILL'))
  await until(
    'the service is ready',
    () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${said}`)
      return said.includes('Ctrl-C stops it')
    },
    60_000,
  )
  const file = join(dataDir, 'credentials.json')
  const credentials = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
  const client = clientOf(credentials?.base_url, credentials?.memory_key)
  return { child, output: () => said, credentials, client, exit }
}

export const remember = (client: Client, content: string) =>
  client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })

export const found = async (client: Client, query: string): Promise<string[]> => {
  const { body } = await client.post('/v1/memory/search', { query, limit: 5 })
  return body.memories.map((row: { content: string }) => row.content)
}
