import t from 'tap'
import {
  personsWords,
  samplesOfNoProgram,
  samplesWithoutWords,
  samplesWithWords,
} from '#test/support/samples/harness-samples.ts'
import { knownMarks } from '#shared/domain/turn/marks.ts'
import { readText as readMarked, type TextReading } from '#shared/domain/turn/text.ts'
import { readQuestion } from '#shared/domain/turn/question.ts'

const readText = (text: string, { isModel = false } = {}): TextReading =>
  readMarked({ text, isModel, messageHolds: part => text.includes(part) })

t.test('the words of a person are found in what programs put around them', async t => {
  for (const [name, sample] of Object.entries(samplesWithWords)) {
    t.equal(readQuestion(sample), personsWords, `${name}, asked`)
    const isKnown = !samplesOfNoProgram.has(name)
    const { words, leftOut } = readText(sample)
    t.equal(words, isKnown ? personsWords : sample, name)
    t.equal(readText(words).words, words, `${name}, read again`)
    t.equal(leftOut.length > 0, isKnown, `${name}, told`)
    const lengths = leftOut.reduce((sum, { characters }) => sum + characters, words.length)
    t.ok(sample.length >= lengths && sample.length - lengths < 20, `${name}, counted`)
  }
})

t.test('a message of a program has no words', async t => {
  for (const [name, sample] of Object.entries(samplesWithoutWords)) {
    t.equal(readQuestion(sample), '', name)
    const isKnown = !samplesOfNoProgram.has(name)
    const { words, leftOut } = readText(sample)
    t.equal(words, isKnown ? '' : sample, name)
    t.equal(leftOut.length > 0, isKnown, name)
  }
})

t.test('every known mark is taken out, and only where its program writes it so', async t => {
  const inner = 'Something of a program.'
  for (const {
    elements = [],
    around = [],
    texts = [],
    spans = [],
    beside = '',
    of,
  } of knownMarks) {
    const isModel = of === 'model'
    for (const follows of [...elements, ...around]) {
      const name = /^[\w.:-]+/.exec(follows)![0]
      const open = `<${follows}${follows.includes('>') ? '' : '>'}`
      const element = `${open}${inner}\n</${name}>`
      const message = `${element}\n${personsWords}`
      const from = { text: message, isModel, messageHolds: (part: string) => part === beside }
      const { words } = readMarked(from)
      t.equal(words.includes(personsWords) && !words.includes('<'), true, follows)
      t.equal(words.includes(inner), around.includes(follows), follows)
      const other = { ...from, isModel: !isModel, messageHolds: () => false }
      t.equal(readMarked(other).words, message, `${follows} in a message of the other`)
      if (beside !== '') {
        t.equal(readMarked({ ...from, messageHolds: () => false }).words, message, follows)
      }
    }
    for (const { name, beginning, also = '', wordsAfter, isWhole } of texts) {
      if (isWhole) {
        t.equal(readText(`\n${beginning}`, { isModel }).words, '', name)
        t.equal(readText(`${beginning} Now.`, { isModel }).words, `${beginning} Now.`, name)
        t.equal(readText(beginning, { isModel: !isModel }).words, beginning, name)
        continue
      }
      const text = `${beginning}${also} and more`
      const isLeftOut = wordsAfter === undefined
      t.equal(readText(text).words, isLeftOut ? '' : wordsAfter === '' ? 'and more' : text, name)
      if (wordsAfter) t.equal(readText(`${text}${wordsAfter}\n${inner}`).words, inner, name)
    }
    for (const { begin, end } of spans)
      t.equal(readText(`${inner}\n\n${begin}\nx\n${end}`).words, inner)
  }
})

t.test('every row has a public source and the day it was read', async t => {
  for (const { program, source, date } of knownMarks) {
    t.match(source, /\w\/\w/, program)
    t.match(date, /^2026-\d\d-\d\d$/, program)
  }
})

t.test('shapes, templates and names that no program owns stay', async t => {
  for (const text of [
    '<order_details>\nitem: 5 red lamps\nship to: Oslo\n</order_details>\nPlease remember this order.',
    '<context>Ada lives in Oslo.</context>\nAnd I in Faro.',
    '<?xml version="1.0"?>\n<invoice_lines>\n<line_item>lamp</line_item>\n</invoice_lines>',
    'Context: Ada lives in Oslo.\nQuestion: where does she live?\nAnswer:',
    'You are an assistant. User question: where does Ada live?',
    '{"question": "where does Ada live now?"}',
    '<user_info>\nAda lives in Oslo.\n</user_info>\nRemember it.',
    '<usage>\n  <total_tokens>512</total_tokens>\n</usage>\nIs that much?',
    '<task>\nPaint the fence.\n</task>\n\n\n\nSoon.',
    'The user has attached great value to quiet rooms.\n<context>none</context> Remember it.',
  ])
    t.same(readText(text), { words: text, leftOut: [] })
  const interrupted = '[Request interrupted by user]\nWhy does a[0] fail?'
  t.equal(readText(interrupted).words, 'Why does a[0] fail?')
  const spaced = '<system-reminder>\nhi\n</system-reminder>\nOne.\n\n\n\nTwo.'
  t.equal(readText(spaced).words, 'One.\n\n\n\nTwo.', 'nothing else is changed')
})

/** What a person writes stays, to the letter. */
const kept: Record<string, string> = {
  plain: '  My cat is called Ada.\n\n\n\nShe hates thunder. ',
  'a lone tag': 'What does the <system-reminder> tag do in Claude Code?',
  'a lone tag on its own line': 'I see this in my log:\n<system-reminder>\nand nothing after it.',
  'an inline element': 'Is <system-reminder>be nice</system-reminder> a prompt injection?',
  'in backticks': 'I wrap it in `<system-reminder>\n…\n</system-reminder>`, is that right?',
  'in a code block': 'Explain:\n```xml\n<system-reminder>\nbe nice\n</system-reminder>\n```',
  html: 'Why is this not centred?\n<div class="box">\n  <p>Hello</p>\n</div>',
  'xml alone': '<order_list>\n  <item>bread</item>\n</order_list>',
  'a custom element': '<my-card class="wide">\n  <slot></slot>\n</my-card>\nWhy is it not shown?',
  'introduced by the person':
    'My notes from the doctor:\n<doctor_notes>\nNo salt.\n</doctor_notes>',
  'comparison signs': 'If a<b and c>d, is a</b/ a tag? 3 < 4 > 2',
  generics: 'Is Map<string, number[]> the same as Record<string, number[]>?',
  json: '{"name": "Ada", "age": 3, "likes": ["tuna"]}',
  'an error as JSON': '{"error": "boom", "message": "Cannot read the file at all"}',
  'own labels': 'Context: I am moving to Lisbon in May.\nQuestion: Which papers do I need?',
  'own labels, at length': `Context: ${'I am moving to Lisbon in May. '.repeat(20)}\nQuestion: Which papers?`,
  'a question label alone': 'Question: is my dog allowed on the train?',
  quoted: ' "To be, or not to be." ',
  speech: '"Come in," she said, "and take a seat."',
  'a list of instructions': 'You are right. Answer me later.\nMy boss is called Duarte.',
  'other languages': '<Привет> мир </Привет>\n„Wie heißt mein Hund?“',
}

t.test('a person who writes about tags, JSON and templates loses nothing', async t => {
  for (const [name, text] of Object.entries(kept))
    t.same(readText(text), { words: text, leftOut: [] }, name)
})

t.test('quotation marks around all of a message are said but not asked', async t => {
  const text = ` "${personsWords}"\n`
  t.equal(readText(text).words, text)
  t.equal(readQuestion(text), personsWords)
  t.equal(readQuestion('"Come in," she said, "now."'), '"Come in," she said, "now."')
})

t.test('code is said but not asked', async t => {
  const text = 'Why does this fail?\n```ts\nconst a = 1\n```\nIt worked before.'
  t.equal(readText(text).words, text)
  t.equal(readQuestion(text), 'Why does this fail?\n\nIt worked before.')
  const code = '```ts\nconst a = 1\n```'
  t.equal(readQuestion(code), code, 'a message of code alone is asked with')
})

t.test("a model's thoughts and tool calls are taken out of its answer, nothing else", async t => {
  const answer = 'It lives in src/login.ts.'
  const read = (text: string): string => readText(text, { isModel: true }).words
  t.equal(read(`<think>\nThe user asks.\n</think>\n\n${answer}`), answer)
  t.equal(read(`<think>The user asks.</think>${answer}`), answer)
  t.equal(read(`The user asks.\n</think>\n${answer}`), answer, 'opened by the template')
  t.equal(read('<think>\nThe user asks and'), '', 'cut off while thinking')
  t.equal(read(`${answer}\n<tool_call>\n{"name": "ls"}\n</tool_call>`), answer)
  const about = `${answer}\n<context>\nkept\n</context>\n{"question": "is this kept?"}`
  t.equal(read(about), about)
})

t.test('hostile texts take linear time', async t => {
  const size = 400_000
  const hostile = {
    opening: '<a_b>\n'.repeat(size / 6),
    closing: '</a_b>'.repeat(size / 6),
    nested: `${'<a_b>'.repeat(size / 11)}${'</a_b>'.repeat(size / 11)}`,
    unended: '<a '.repeat(size / 3),
    fences: '```\n~~~\n'.repeat(size / 8),
    labels: 'Context:\nQuestion:\n'.repeat(size / 19),
    reminders: '<system-reminder>The user sent the following message:</system-reminder>\n'.repeat(
      size / 75,
    ),
    blanks: `${' '.repeat(size / 2)}<system-reminder>${'\n'.repeat(size / 2)}</system-reminder>`,
    thoughts: '<think>'.repeat(size / 7),
    json: `{"a":${'['.repeat(size)}}`,
  }
  for (const [name, text] of Object.entries(hostile)) {
    const startedAt = process.cpuUsage().user
    readText(text)
    readQuestion(text)
    readText(text, { isModel: true })
    // Far less than a second; in quadratic time it would be minutes.
    t.ok(process.cpuUsage().user - startedAt < 60_000_000, name)
  }
})
