import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { fillDates, parseRelativeDate } from '#scripts/demo/relative-dates.ts'
import { readConversation } from '#scripts/demo/conversation.ts'
import { questions } from '#scripts/demo/questions.ts'
import { displayWidth, wrapText } from '#scripts/demo/terminal.ts'
import type { StoryResult } from '#scripts/demo/story.ts'
import { excerptAround, sharedWords } from '#scripts/demo/explain-match.ts'
import { cleanEnvironment } from '#scripts/services/process.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

// A start of its own makes two databases from nothing.

const script = fileURLToPath(new URL('../../scripts/demo.ts', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'demo-test-'))
t.teardown(() => rmSync(scratch, { recursive: true, force: true }))

type Ran = { code: number | null; out: string; err: string }

/** Runs the demo as a newcomer does; temporary files go where the test can count them. */
function demo(args: string[], env: Record<string, string> = {}): Promise<Ran> {
  const { BASE_URL: _base, MEMORY_KEY: _key, ...rest } = cleanEnvironment()
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...rest, DATA_DIR: join(scratch, 'no-vault'), TMPDIR: scratch, ...env },
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}

t.test(
  'a running service: the demo passes there and leaves the vault of its owner alone',
  async t => {
    const backend = await createTestBackend(t)
    await startJobWorkers(backend)
    const key = await buildKey(backend)
    const api = await startTestApi(t, backend, key)
    const { base } = api

    const { code, out, err } = await demo(['--json'], { BASE_URL: base, MEMORY_KEY: key })
    t.equal(err, '')
    const story = JSON.parse(out) as StoryResult & { service: { kind: string } }
    t.same(story.failed, [])
    t.equal(code, 0, err)
    t.equal(story.service.kind, 'running')
    t.equal(
      story.stats.memories,
      story.told.reduce((sum, { turns }) => sum + turns, 0),
    )
    t.equal(story.asked.length, questions.length)
    t.ok(story.asked.every(({ found }) => found.some(({ isAnswer }) => isAnswer)))
    t.equal(story.unanswerable.context, null)
    t.match(story.prepared.context, /^<memory_context>\n\[.* · (user|assistant)\] .*\n/)
    t.equal((await api.get('/v1/memory/stats')).body.memories, 0, 'the vault of the owner')

    await t.test('found by the credentials it wrote down', async t => {
      const dataDir = join(scratch, 'vault')
      mkdirSync(dataDir)
      const credentials = { base_url: base, memory_key: key, admin_key: null }
      writeFileSync(join(dataDir, 'credentials.json'), JSON.stringify(credentials))
      const { code, out } = await demo([], { DATA_DIR: dataDir })
      t.equal(code, 0, out)
      t.match(out, `Using the service that runs at ${base}`)
      const [demoKey = ''] = /\bmk_[A-Za-z0-9]{32}\b/.exec(out) ?? []
      t.not(demoKey, key)
      const { body } = await createTestClient(base, demoKey).get('/v1/memory/stats')
      t.equal(body.memories, story.stats.memories, 'the vault the demo says it made')
    })
  },
)

t.test('no service: one is started, filled, asked and removed again', async t => {
  const { code, out, err } = await demo([], { DATABASE_URL: 'postgres://127.0.0.1:1/not-used' })
  t.equal(err, '')
  t.equal(code, 0, out)
  for (const part of [
    'Starting a service',
    'What was said',
    'A cake without nuts',
    'What is remembered',
    questions[0]!.text,
    '✓',
    'context: null',
    'What a model is given',
    '<memory_context>',
    'In short',
    `All ${questions.length + 2} questions were answered as they should be.`,
  ]) {
    t.ok(out.includes(part), part)
  }
  t.notOk(out.includes('\u001B'), 'no colours where nobody looks')
  t.ok(
    out.split('\n').every(line => displayWidth(line) <= 100),
    'no line passes 100 columns',
  )
  t.same(
    readdirSync(scratch).filter(name => name.startsWith('memory-vault-demo-')),
    [],
  )
})

t.test('a service that forgets everything fails, and the demo says which questions', async t => {
  let stored = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}
      stored += body.messages && request.url?.includes('ingest') ? body.messages.length : 0
      response.end(
        JSON.stringify({
          key: 'mk_forgetful',
          memories: request.url === '/v1/memory/search' ? [] : stored,
          context: null,
        }),
      )
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, out, err } = await demo(['--json', '--base-url', base, '--key', 'mk_any'])
  t.equal(code, 1, err)
  t.equal((JSON.parse(out) as StoryResult).failed.length, questions.length + 1)
})

t.test('options', async t => {
  const help = await demo(['--help'])
  t.equal(help.code, 0, help.err)
  t.match(help.out, '--base-url')
  t.match(await demo(['--nonsense']), { code: 2, err: /--nonsense/ })
  t.match(await demo(['--key', 'mk_any']), { code: 2, err: /--base-url/ })
  t.match(await demo(['--base-url', 'http://127.0.0.1:1']), { code: 2, err: /--key/ })
  const unreachable = await demo(['--base-url', 'http://127.0.0.1:1', '--key', 'mk_any'])
  t.match(unreachable, { code: 1, out: /eight months/, err: /does not answer/ })
})

t.test('the conversation is in order and past, on any day of the demo', async t => {
  const anyMoment = fc.date({
    min: new Date('2024-01-01T00:00:00Z'),
    max: new Date('2040-01-01T00:00:00Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(anyMoment, now => {
      const { sittings, turnText } = readConversation(now)
      const turns = sittings.flatMap(sitting => sitting.turns)
      const inOrder = turns.every(
        ({ timestamp }, index) => timestamp > (turns[index - 1]?.timestamp ?? 0),
      )
      for (const { text, answerTurnId, outdatedTurnId = answerTurnId } of questions) {
        fillDates(text, now)
        turnText(answerTurnId)
        turnText(outdatedTurnId)
      }
      return inOrder && turns.at(-1)!.timestamp < now.getTime()
    }),
    { numRuns: 200 },
  )
  const { sittings } = readConversation(new Date())
  t.ok(sittings.length >= 14)
  t.ok(sittings.flatMap(({ turns }) => turns).length >= 70)
})

t.test('dates are written out from the day of the demo', async t => {
  const now = new Date('2026-01-31T12:00:00Z')
  t.equal(fillDates('{2nd Saturday, 3 months ago}', now), 'Saturday 11 October')
  t.equal(fillDates('on {day 20, in 1 month}', now), 'on 20 February')
  t.equal(fillDates('{month, 5 months ago}', now), 'August')
  t.throws(() => fillDates('{some day}', now))
  const moment = (words: string) => new Date(parseRelativeDate(words, now)).toISOString()
  t.equal(moment('2 months ago, day 4, 15:15'), '2025-11-04T15:15:00.000Z')
  t.equal(moment('4 days ago, 18:20'), '2026-01-27T18:20:00.000Z')
  t.equal(moment('150 minutes ago'), '2026-01-31T09:30:00.000Z')
  t.throws(() => parseRelativeDate('yesterday', now))
})

t.test('lines break between words and never pass the edge', async t => {
  const words = fc.array(fc.stringMatching(/^[a-zé猫]{1,12}$/), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(words, fc.integer({ min: 24, max: 80 }), (words, width) => {
      const lines = wrapText(words.join(' '), width)
      t.equal(lines.join(' '), words.join(' '))
      return lines.every(line => displayWidth(line) <= width)
    }),
  )
})

t.test('an excerpt keeps what the question asked for', async t => {
  const text = `${'It rained all day. '.repeat(9)}Her lessons are with Marsh. ${'We had soup. '.repeat(9)}`
  const shared = sharedWords('Who gave her a lesson?', text)
  t.same(shared, ['lessons'])
  const excerpt = excerptAround(text, shared, 60)
  t.match(excerpt, /^… .*Her lessons are with Marsh\..* …$/)
  const long = `${'on and on '.repeat(30)}the order KV-70418-R ${'and on and on '.repeat(30)}`
  const [token = ''] = sharedWords('What was KV-70418-R?', long)
  t.equal(token, 'KV-70418-R')
  const cut = excerptAround(long, [token], 80)
  t.ok(cut.includes(token))
  t.ok(cut.length <= 84)
  t.equal(excerptAround('All of it.', [], 80), 'All of it.')
  const inside = excerptAround('aaaaaaaz a. aaaaaaa aaaaaaa z? a', ['z'], 20)
  t.match(inside, 'z', 'a word that stands inside a longer one first')
  t.equal(
    excerptAround(
      'Dr. Osei is kind. She has a dog that sleeps under the desk all day.',
      ['Osei'],
      50,
    ),
    'Dr. Osei is kind. She has a dog that sleeps under …',
  )

  const anyText = fc.array(fc.stringMatching(/^[A-Z]?[a-z]{1,9}[.?]?$/), { minLength: 1 })
  fc.assert(
    fc.property(anyText, fc.nat(), fc.integer({ min: 20, max: 90 }), (parts, nth, most) => {
      const word = parts[nth % parts.length]!.replace(/[.?]$/, '')
      const excerpt = excerptAround(parts.join(' '), [word], most)
      return excerpt.includes(word) && excerpt.replaceAll('…', '').trim().length <= most
    }),
  )
})
