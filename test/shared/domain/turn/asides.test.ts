import t from 'tap'
import { hasAsidePrompt, isAsideCall, type CallShape } from '#shared/domain/turn/asides.ts'
import { knownMarks } from '#shared/domain/turn/marks.ts'
import { samplesWithWords } from '#test/support/samples/harness-samples.ts'

const call = (more: Partial<CallShape>): CallShape => ({
  systemTexts: ['You are Claude Code.'],
  userTexts: ['What is my cat called?'],
  maxTokens: undefined,
  ...more,
})

t.test('every known prompt of a program is an aside', async t => {
  const forms = knownMarks.flatMap(({ program, asides = [] }) =>
    asides.flatMap(({ also = [''], ...form }) => also.map(also => ({ program, also, ...form }))),
  )
  for (const { program, of, beginning, also, isQuotaTest } of forms) {
    if (isQuotaTest) continue
    const text = `\n${beginning.replaceAll(' ', '\n')} and so on.\n${also}\n`
    const shape =
      of === 'system'
        ? { systemTexts: ['You are Claude Code.', text] }
        : { userTexts: ['Plan mode is active.', text, '"What is my cat called?"'] }
    t.equal(isAsideCall(call(shape)), true, program)
    t.equal(hasAsidePrompt('user', [text.toUpperCase()]), of === 'user', program)
  }
})

t.test('one token of reply is a test of the quota for the word of the program alone', async t => {
  t.equal(isAsideCall(call({ userTexts: ['quota'], maxTokens: 1 })), true)
  t.equal(isAsideCall(call({ userTexts: ['quota'], maxTokens: 2 })), false)
  t.equal(isAsideCall(call({ userTexts: ['Is Ada a cat?'], maxTokens: 1 })), false)
})

t.test('what a person asks is no aside', async t => {
  const asked = [
    'Generate a title for my novel about a lighthouse.',
    'Summarize the conversation I had with my boss.',
    '### Task: paint the fence\nWhat do I need?',
    'What tags did I use for the trip?',
    'quota',
    '',
    ...Object.values(samplesWithWords),
  ]
  for (const text of asked) {
    for (const shape of [{}, { maxTokens: 16 }])
      t.equal(isAsideCall(call({ userTexts: [text], ...shape })), false, text.slice(0, 80))
  }
  const systemTexts = ['You are a message classifier. Return JSON.']
  t.equal(isAsideCall(call({ systemTexts })), false)
})
