import t from 'tap'
import { Refusal } from '#shared/core/errors.ts'
import { redactOrSkipTurns, type RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import { redactionKinds } from '#shared/privacy/detectors.ts'
import { chunkMessages, type ChunkedTurn } from '#shared/vault/base/text-chunks.ts'
import {
  chunkMessagesInThread,
  redactOrSkipTurnsInThread,
} from '#shared/vault/ingest/text-thread.ts'
import { countTurns, stopClock } from '#test/support/checks/step-clock.ts'

t.setTimeout(0)

const mebibyte = 1024 * 1024
const repeated = (piece: string, length: number): string =>
  piece.repeat(Math.ceil(length / piece.length))
const user = (content: unknown) => [{ role: 'user', content }]

const redact: RedactionPolicy = { mode: 'redact', kinds: redactionKinds }
const block: RedactionPolicy = { mode: 'block', kinds: redactionKinds }

t.test('in the thread the same comes out as inline', async t => {
  const email = 'Write to ada@example.com, she is at home. '
  const messages = [
    { role: 'system', content: repeated('rules ', 70_000) },
    ...user([{ type: 'text', text: repeated(email, 70_000) }, { type: 'image_url' }, 'x']),
    { role: 'assistant', content: 'Done.\n\n  ', name: 'Ada', timestamp: 7, interrupted: true },
    ...user({ not: 'a text' }),
  ]
  for (const redaction of [null, redact]) {
    const inline = await chunkMessages(redaction, messages)
    const aside = await chunkMessagesInThread(redaction, messages)
    t.same(aside.turns, inline.turns)
    t.ok(aside.turns[0]!.chunks.length > 10)
    t.same(aside.messages, inline.messages)
  }
  await t.rejects(chunkMessagesInThread(block, messages), {
    reason: 'invalid',
    message: 'messages[1] holds an email address (email)',
    hint: /redaction policy/,
  })
})

t.test('turns are redacted in the thread as inline, and the event loop goes on', async t => {
  const email = 'Write to ada@example.com or call +49 30 1234567, she is at home. '
  const said = [
    { role: 'user', text: repeated(email, mebibyte), at: 7 },
    { role: 'user', text: 'Nothing private.', speaker: 'ada@example.com' },
  ] as const
  const { turns, stop } = countTurns()
  const aside = await redactOrSkipTurnsInThread(redact, said)
  stop()
  t.ok(turns() > 10, `${turns()} turns`)
  const inline = redactOrSkipTurns(redact, said)
  t.same(
    aside.map(({ speaker, at }) => [speaker, at]),
    inline.map(({ speaker, at }) => [speaker, at]),
  )
  t.ok(aside.every(({ text }, index) => text === inline[index]!.text))
  t.same(await redactOrSkipTurnsInThread(block, said), [])
  t.equal(await redactOrSkipTurnsInThread(null, said), said)
})

t.test('several texts at once, each gets its own', async t => {
  const chunked = await Promise.all(
    ['a', 'b', 'c', 'd'].map(word =>
      chunkMessagesInThread(null, user(repeated(`${word} `, 80_000))),
    ),
  )
  for (const [index, { turns }] of chunked.entries()) {
    t.match(turns[0]!.chunks[0]!.text, 'abcd'[index]!)
    t.equal(turns[0]!.chunks.map(({ text }) => text).join('').length, 80_000)
  }
})

t.test('heavy texts do not hold the event loop', async t => {
  // What runs in this thread never pauses: only the other one lets the event loop turn.
  stopClock(t)
  const prose = 'My cat is called Ada, she was born in May and hates thunder. '
  for (const [name, text] of [
    ['1 MiB of x', repeated('x', mebibyte)],
    ['1 MiB of English', repeated(prose, mebibyte)],
    ['256 KiB of short lines', repeated('a\n', mebibyte / 4)],
    ['a grapheme of 256 KiB', `e${repeated('\u0301', mebibyte / 4)}`],
  ] as const) {
    const { turns, stop } = countTurns()
    const chunked = await chunkMessagesInThread(redact, user(text))
    stop()
    t.ok(turns() > 10, `${name}: ${turns()} turns`)
    const [{ chunks }] = chunked.turns as [ChunkedTurn]
    t.ok(chunks.every(({ tokens }) => tokens <= 512))
    t.equal(chunks.map(chunk => chunk.text).join('') === text, true, 'nothing is lost')
  }
})

t.test('a task ends when its signal aborts, begun or not, and the next one is done', async t => {
  const gone = new AbortController()
  const long = repeated('My cat is called Ada. ', mebibyte)
  const reason = new Refusal('unavailable', 'gone')
  const tasks = [long, long, long].map(text => chunkMessagesInThread(null, user(text), gone.signal))
  const refused = Promise.all(tasks.map(task => t.rejects(task, reason)))
  gone.abort(reason)
  await refused
  await t.rejects(chunkMessagesInThread(null, user(long), gone.signal), reason)
  const { turns } = await chunkMessagesInThread(null, user(repeated('a ', 80_000)))
  t.equal(turns.length, 1)
})
