import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import {
  connectProgram,
  keepApart,
  startChatWorld,
  startServer,
} from '#test/programs/chat-world.ts'
import { installNode } from '#test/programs/install.ts'
import { libreChat, noteSeen } from '#test/programs/seen.ts'

/**
 * LibreChat's packages of npm with the yaml that `connect` prints: its schema takes it, two people, titles and labels
 * are not stored, an error. Its server is in no registry.
 */

t.setTimeout(1_200_000)
const installed = await installNode([libreChat, 'librechat-data-provider@0.8.524', 'js-yaml@4'])
const skip = 'missing' in installed && installed.missing

t.test('LibreChat', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { folder } = installed as { folder: string }
  const cwd = mkdtempSync(join(folder, 'run-'))
  t.teardown(() => rmSync(cwd, { recursive: true }))
  cpSync(join(import.meta.dirname, 'node/librechat.mjs'), join(cwd, 'librechat.mjs'))
  const printed = await connectProgram('librechat', cwd, world)
  const yaml = /^endpoints:\n(?:[ \w].*\n)+/m.exec(printed)![0]
  const origin = await startServer(t, process.execPath, {
    args: port => ['librechat.mjs', port],
    live: '/',
    cwd,
    env: {
      ...parseEnv(readFileSync(join(cwd, '.env'), 'utf8')),
      CONFIG_PATH: t.testdir({ 'librechat.yaml': `version: 1.3.0\n${yaml}` }) + '/librechat.yaml',
    },
  })
  const ask = async (person: string, words: string, options = {}): Promise<string> => {
    const body = { person, conversation: crypto.randomUUID(), words, options }
    return await (await fetch(origin, { method: 'POST', body: JSON.stringify(body) })).text()
  }
  const asPerson = (id: string) => ({ id, say: (words: string) => ask(id, words) })
  await keepApart(
    t,
    world,
    asPerson('66f0a1b2c3d4e5f601234567'),
    asPerson('66f0a1b2c3d4e5f6089abcde'),
  )
  const bodies = world.provider.requests.map(({ body }) => body.toString())
  for (const helper of ['5-word-or-less title', 'agent activity', 'reasoning step']) {
    t.equal(bodies.filter(body => body.includes(helper)).length, 4, `${helper}: once a turn`)
  }
  t.match(
    await ask('ada', 'Hello', { temperature: 9 }),
    /temperature/,
    'what is refused is said in words',
  )
  if (t.passing()) noteSeen(libreChat)
})
