import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'

type Check = { check: string; ok: boolean; detail: string }
type Outcome = { code: number; output: string; checks: Check[] }

/** A service with a model on loopback, for programs in processes of their own. */
export async function startProgramWorld(t: Test) {
  const provider = await startModelProvider(t)
  const backend = await createTestBackend(t, { env: provider.env })
  await startJobWorkers(backend)
  const { base } = await startTestApi(t, backend)
  // A program reads what its model was sent.
  const bodies = createServer((_, response) => {
    const sent = provider.requests.map(({ body }) => body.toString())
    provider.clearRequests()
    response.end(JSON.stringify(sent))
  })
  const environment: Record<string, string | undefined> = {
    PATH: process.env.PATH,
    BASE_URL: base,
    SEEN: await listen(t, bodies),
    OWNER_KEY: await buildKey(backend),
    ...provider.env,
    OPENAI_API_KEY: providerKey('openai'),
    ANTHROPIC_API_KEY: providerKey('anthropic'),
    GEMINI_API_KEY: providerKey('google'),
  }
  return { environment, newKey: () => buildKey(backend) }
}

/** Runs a program that prints its checks, and asserts each of them. */
export async function runProgram(
  t: Test,
  command: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string | undefined> },
): Promise<void> {
  const { code, output, checks } = await follow(command, args, options)
  t.ok(checks.length > 0, `checks were made: ${checks.length > 0 ? '' : output}`)
  for (const { check, ok, detail } of checks) t.ok(ok, ok ? check : `${check}: ${detail}`)
  t.equal(code, 0, `the program ends without a fault: ${code === 0 ? '' : output.slice(-2000)}`)
}

async function follow(
  command: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string | undefined> },
): Promise<Outcome> {
  const child = spawn(command, args, options)
  const outcome: Outcome = { code: 0, output: '', checks: [] }
  child.stderr.on('data', (data: Buffer) => (outcome.output += data.toString()))
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)))
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{"check"')) outcome.checks.push(JSON.parse(line) as Check)
    else outcome.output += `${line}\n`
  }
  return { ...outcome, code: await ended }
}
