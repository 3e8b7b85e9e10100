import t from 'tap'
import { questionKind, statesPreference } from '#shared/search/query/sentence-kinds.ts'
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
