import t from 'tap'
import { asksMemory, questionKind, statesPreference } from '#shared/search/query/sentence-kinds.ts'
import { readPage } from '#test/support/samples/question-samples.ts'

t.test('the kind of a question, in several languages', async t => {
  for (const [kind, question] of readPage('kinds of questions'))
    t.equal(questionKind(question), kind === '-' ? undefined : kind, question)
})

t.test('statements of likes and standing instructions', async t => {
  for (const text of [
    'I prefer window seats.',
    'From now on, answer in French.',
    "I'm allergic to nuts.",
    'Always use tabs in my code.',
    'Ich mag keinen Koriander.',
    'Me gusta el té sin azúcar.',
    'Я люблю горы.',
    '我喜欢辣的菜。',
  ])
    t.ok(statesPreference(text), text)
  for (const text of ['The train was late.', 'My sister works in Leeds.', 'Das Auto ist rot.'])
    t.notOk(statesPreference(text), text)
})

t.test('what only memory could tell: not what an agent finds in the files before it', async t => {
  for (const text of [
    'When is my driving test?',
    'What did we decide about our build?',
    'Which branch did I say we deploy from?',
    'Why did we leave that repository?',
    'When is our release?',
    'Was haben wir zu unserem Build entschieden?',
  ])
    t.ok(asksMemory(text), text)
  for (const text of [
    'Why does our build fail?',
    'Why do our tests fail?',
    'Which test is failing in my branch?',
    'Is our code covered by unit tests?',
    'Warum schlägt unser Build fehl?',
  ])
    t.notOk(asksMemory(text), text)
})
