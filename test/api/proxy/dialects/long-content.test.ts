import t from 'tap'
import { dialects } from '#api/proxy/dialects/index.ts'
import { readMessageContent } from '#shared/domain/turn/turns.ts'
import { leastHold, watchEventLoop } from '#test/support/event-loop.ts'

/* Long messages of model calls are read in a thread, to what they are at once. */

t.setTimeout(0)

const mebibyte = 1024 * 1024
const prose = 'My cat is called Ada, she was born in May; the vet is in Naxos. '
const block = '<memory_context>\n[3 hours ago · 2026-11-20 15:15 UTC · user] x\n</memory_context>\n'
const repeated = (piece: string, length: number): string =>
  piece.repeat(Math.ceil(length / piece.length))

const texts: Record<string, string> = {
  prose: repeated(prose, 1.25 * mebibyte),
  'characters of several bytes': `é${repeated('😀é日', 1.25 * mebibyte)}`,
  'harness in between': repeated(
    `<system-reminder>\n${prose}\n</system-reminder>\nWhere is Ada?\n\n\n\n`,
    1.25 * mebibyte,
  ),
  'harness alone': `<system-reminder>\n${repeated(prose, 1.25 * mebibyte)}\n</system-reminder>`,
  'a template': `Context:\n${repeated(`${prose}\n`, 1.25 * mebibyte)}\nQuestion: Where is Ada?\nAnswer:`,
  'code blocks': repeated(`\`\`\`\n${prose}\n\`\`\`\n`, 1.25 * mebibyte),
  'echoes of our block': `${repeated(block, 1.25 * mebibyte)}Where is Ada?`,
}

const request = (content: unknown, last?: string) =>
  Buffer.from(
    JSON.stringify({
      model: 'gpt-4o-mini',
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: repeated(prose, 1.25 * mebibyte) },
        { role: 'user', content, name: 'Ada' },
        ...(last === undefined ? [] : [{ role: 'user', content: last }]),
      ],
    }),
  )

t.test('what is said, asked and left out is the same as at once', async t => {
  for (const [name, text] of Object.entries(texts)) {
    const parts = [{ type: 'text', text }, { type: 'image_url' }]
    for (const body of [request(text), request(parts, 'And the dog?')]) {
      const atOnce = dialects.openai.parseRequest(body)
      const ahead = await dialects.openai.parseInSlices(body)
      await ahead.readAhead()
      t.equal(ahead.aside, atOnce.aside, name)
      t.same(ahead.leftOut, atOnce.leftOut)
      t.ok(ahead.userTurn!.fingerprint.equals(atOnce.userTurn!.fingerprint), 'fingerprint')
      t.ok(JSON.stringify(ahead.newMessages) === JSON.stringify(atOnce.newMessages), 'messages')
      const storable = [ahead, atOnce].map(({ userTurn }) => JSON.stringify(userTurn!.storable))
      t.ok(storable[0] === storable[1], 'storable')
      const context = { context: 'block' }
      t.ok(ahead.serialize(context).equals(atOnce.serialize(context)), 'bytes')
    }
  }
})

t.test('of long messages the beginning and the end are recalled for', async t => {
  const text = `First words. ${texts['prose']} Where is Ada?`
  const body = request(text)
  const ahead = await dialects.openai.parseInSlices(body)
  await ahead.readAhead()
  const [hello, reply, asked] = ahead.turns
  t.match([hello!.role, hello!.content], ['user', 'Hello'])
  t.match([reply!.role, asked!.role, asked!.name], ['assistant', 'user', 'Ada'])
  for (const { content } of [reply!, asked!]) {
    t.ok((content as string).length < mebibyte, 'it is bounded')
  }
  t.match(asked!.content, /^First words\./)
  t.match(asked!.content, /Where is Ada\?$/)
  ahead.forgetTexts()
  t.ok(ahead.turns[2]!.content === text, 'read again, it is all there')
})

t.test('no turn of the event loop is long while 18 MiB are read', async t => {
  for (const name of ['characters of several bytes', 'code blocks', 'echoes of our block']) {
    const some = texts[name]!
    const text = repeated(some, 18 * mebibyte).slice(0, 18 * mebibyte)
    const body = request(text)
    await (await dialects.openai.parseInSlices(request(texts['prose']))).readAhead()
    const before = process.threadCpuUsage()
    readMessageContent('user', text)
    const { user, system } = process.threadCpuUsage(before)
    const atOnce = (user + system) / 1_000
    const isShort = (hold: number) => hold < Math.max(150, atOnce / 3)
    const longest = await leastHold(3, isShort, async () => {
      const request_ = await dialects.openai.parseInSlices(body)
      const stop = watchEventLoop()
      await request_.readAhead()
      void [request_.aside, request_.userTurn?.fingerprint, request_.newMessages, request_.turns]
      await new Promise(setImmediate)
      return stop()
    })
    t.comment(
      `${name}: ${longest.toFixed(0)} ms in the longest turn; read at once ${atOnce.toFixed(0)}`,
    )
    t.ok(isShort(longest), `${longest.toFixed(0)} ms`)
  }
})
