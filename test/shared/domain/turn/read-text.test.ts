import t from 'tap'
import {
  personsWords,
  samplesWithoutWords,
  samplesWithWords,
} from '#test/support/harness-samples.ts'
import { harnessElementNames } from '#shared/domain/turn/harness-elements.ts'
import { readQuestion, readText } from '#shared/domain/turn/read-text.ts'
import { templateForms } from '#shared/domain/turn/templates.ts'

t.test('the words of a person are found in what programs put around them', async t => {
  for (const [name, sample] of Object.entries(samplesWithWords)) {
    t.equal(readText(sample).words, personsWords, name)
    t.equal(readQuestion(sample), personsWords, `${name}, asked`)
    t.equal(readText(readText(sample).words).words, personsWords, `${name}, read again`)
    t.not(readText(sample).leftOut.length, 0, `${name}, told`)
  }
})

t.test('a message of a program has no words', async t => {
  for (const [name, sample] of Object.entries(samplesWithoutWords)) {
    const { words, leftOut } = readText(sample)
    t.equal(words, '', name)
    t.not(leftOut.length, 0, name)
  }
})

t.test('every known element and template is taken out', async t => {
  for (const listed of harnessElementNames) {
    const name = listed.replace('*', 'x')
    const inner = 'Something of a program.'
    const { words } = readText(`<${name}>\n${inner}\n</${name}>\n${personsWords}`)
    t.ok([personsWords, `${inner}\n\n${personsWords}`].includes(words), name)
    t.notMatch(words, '<', name)
  }
  for (const { beginning, source } of templateForms) {
    t.equal(readText(`${beginning} and more`).words, '', source)
  }
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
  for (const [name, text] of Object.entries(kept)) {
    t.same(readText(text), { ...readText(text), words: text, leftOut: [] }, name)
  }
})

t.test('quotation marks around all of a message are said but not asked', async t => {
  t.equal(readText(`"<context>a page</context>\n\n${personsWords}"`).words, personsWords)
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

t.test('an unknown element is harness beside words of another part', async t => {
  const element = '<acme_state>\ncart: empty\n</acme_state>'
  t.equal(readText(element).words, element)
  t.equal(readText(element, { hasOtherWords: true }).words, '')
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
    readText(text, { isModel: true })
    // Far less than a second; in quadratic time it would be minutes.
    t.ok(process.cpuUsage().user - startedAt < 60_000_000, name)
  }
})
