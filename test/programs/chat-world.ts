import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { listen } from '#test/support/start/listen.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import {
  startProxyFixture,
  type ProxyFixture,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export type ChatWorld = ProxyFixture & {
  /** A Memory Key that names the user of each call. */
  key: string
}

/** A person of a chat program: the id that it sends of them, and a message to its model with the answer. */
export type Person = { id: string; say(words: string): Promise<string> }

/** A service for a chat program that several people use. */
export async function startChatWorld(t: Test): Promise<ChatWorld> {
  const world = await startProxyFixture(t)
  await startJobWorkers(world.backend)
  const { body } = await world.owner.post('/v1/keys', { name: 'Chat', rights: 'users' })
  return { ...world, key: (body as { key: string }).key }
}

/** The lines of the guide below a heading, in their order. */
export const snippetsOf = (heading: string): string[] => {
  const page = readFileSync(join(root, 'api/guides/chat-programs.md'), 'utf8')
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  return [...section.split('\n## ')[0]!.matchAll(/^```\w+\n(.*?)^```$/gms)].map(found => found[1]!)
}

/** Runs `npm run connect` for a chat program in this folder. @returns what it printed. */
export async function connectProgram(
  client: string,
  folder: string,
  { base, ownerKey }: ChatWorld,
): Promise<string> {
  const words = [join(root, 'scripts/clients/connect.ts'), client, '--yes']
  const { NODE_OPTIONS: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, words, {
    cwd: folder,
    env: { ...env, HOME: folder, INIT_CWD: folder, BASE_URL: base, MEMORY_KEY: ownerKey },
  })
  return stdout
}

/** Starts a program that listens on a free port, until the end of the test. @returns its origin, once `live` answers. */
export async function startServer(
  t: Test,
  command: string,
  {
    args,
    live,
    ...options
  }: { args: (port: string) => string[]; live: string; cwd: string; env: NodeJS.ProcessEnv },
): Promise<string> {
  const reserved = createServer()
  const origin = await listen(t, reserved)
  reserved.close()
  await once(reserved, 'close')
  const child = spawn(command, args(new URL(origin).port), {
    ...options,
    env: { PATH: process.env.PATH, HOME: options.cwd, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (printed += data))
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await waitUntil(`${live} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`it has ended: ${printed.slice(-2000)}`)
    const answer = await fetch(origin + live).catch(() => undefined)
    return answer?.ok === true
  })
  return origin
}

/**
 * Two people say where their spare keys are and ask for them: each model call has their own words alone, the provider
 * learns of no user, and what is stored of each are their words and the answers, once.
 */
export async function keepApart(t: Test, world: ChatWorld, ada: Person, ben: Person) {
  const { provider, backend, base, key } = world
  const [clock, mat] = ['My spare key hangs behind the clock.', 'My spare key lies under the mat.']
  const question = 'Where is my spare key?'
  t.equal(await ada.say(clock), defaultReply)
  t.equal(await ben.say(mat), defaultReply)
  await waitUntilIdle(backend)
  for (const [{ id, say }, own, other] of [
    [ada, clock, mat],
    [ben, mat, clock],
  ] as const) {
    const before = provider.requests.length
    await say(question)
    const asked = provider.requests.slice(before).filter(({ body }) => body.includes(question))
    const sent = asked.map(({ body }) => body.toString()).join('\n')
    t.match(sent, new RegExp(`memory_context[^]*${own}`))
    t.notMatch(sent, other)
    const told = JSON.stringify(asked.map(({ headers }) => headers))
    t.notMatch(
      told,
      new RegExp(`memory-user|user_api_key|openwebui-user|@example|${id}`, 'i'),
      'no user is told',
    )
    await waitUntilIdle(backend)
    const { body } = await createTestClient(base, key).get('/v1/memory/list', {
      'x-memory-user': id,
    })
    const { items } = body as { items: { role: string; text: string }[] }
    t.same(
      items.map(({ role, text }) => `${role}: ${text}`).toSorted(),
      [
        `assistant: ${defaultReply}`,
        `assistant: ${defaultReply}`,
        `user: ${own}`,
        `user: ${question}`,
      ].toSorted(),
      'their words and the answers are stored',
    )
  }
}
