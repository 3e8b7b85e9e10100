import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

export type StartedService = {
  child: ChildProcess
  output: () => string
  credentials: { base_url: string; memory_key: string; admin_key: string }
  client: TestClient
  exit: Promise<number | null>
}

const ofTests = /^(npm_.*|DATABASE_URL|MONGODB_URI)$/i

/** The environment of a terminal: that of this test without its databases, and without what its own npm has set. */
export const environmentWithoutDatabases = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !ofTests.test(name)),
)

/**
 * Runs the program of `npm start`, or another command that starts it, and waits until it is ready. It
 * is killed at the end of the test if it still runs.
 */
export async function startService(
  t: Test,
  dataDir: string,
  env: Record<string, string> = {},
  command: readonly [string, ...string[]] = [process.execPath, 'scripts/start.ts'],
): Promise<StartedService> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    env: { ...environmentWithoutDatabases, DATA_DIR: dataDir, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (output += chunk))
  const exit = new Promise<number | null>(resolve => child.once('exit', resolve))
  const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
  t.teardown(() => child.kill('SIGKILL'))
  await waitUntil('the service is ready', async () => {
    if (child.exitCode !== null) {
      // What it said last may still be on its way.
      await closed
      throw new Error(`it ended: ${output}`)
    }
    return output.includes('Ctrl-C stops it')
  })
  const file = join(dataDir, 'credentials.json')
  const credentials = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
  const client = createTestClient(credentials?.base_url, credentials?.memory_key)
  return { child, output: () => output, credentials, client, exit }
}

export const ingestText = (client: TestClient, content: string) =>
  client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })

export const searchTexts = async (client: TestClient, query: string): Promise<string[]> => {
  const { body } = await client.post('/v1/memory/search', { query, limit: 5 })
  return body.memories.map((row: { content: string }) => row.content)
}

/** Checks that a start prints the keys of the first account, and that they open the service. */
export async function checkPrintedKeys(
  t: Test,
  { credentials, output, client }: StartedService,
): Promise<void> {
  t.match(output(), `Memory Key  ${credentials.memory_key}`)
  t.match(output(), `Admin key   ${credentials.admin_key}`)
  t.notMatch(output(), '<your Memory Key>')
  t.equal((await ingestText(client, 'The oven was mended')).status, 200)
  const admin = createTestClient(credentials.base_url, credentials.admin_key)
  t.equal((await admin.get('/v1/orgs')).status, 200)
}
