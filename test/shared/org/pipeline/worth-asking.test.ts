import t from 'tap'
import { isGeneralQuestion, isPhatic } from '#shared/org/pipeline/worth-asking.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { model, newTeam } = await startTeamService(t)

t.test('messages that state nothing', async t => {
  for (const text of ['ok', 'Thanks!', ' OK. ', '谢谢。', '…', 'Go on', 'Merci beaucoup !'])
    t.ok(isPhatic(text), text)
  for (const text of ['yes', 'Budget approved', 'ok, the launch is in May', 'no', '会议改到周五'])
    t.notOk(isPhatic(text), text)
})

t.test('what any model knows, and pieces of code', async t => {
  for (const text of [
    'How do I sort an array in Python?',
    'what is a monad',
    'Explain the difference between TCP and UDP.',
    'Write a function that reverses a string',
    'Fix this:\n```ts\nconst client = ourClient.connect("Initech")\n```',
    'Comment faire une boucle en JavaScript ?',
  ])
    t.ok(isGeneralQuestion(text), text)
})

t.test('what may say something on the way is looked at', async t => {
  for (const text of [
    'How do I tell our client that the launch moves?',
    'How do I reach Nora about Atlas?',
    'What is the plan now that the launch is on May 5?',
    'Explain why. The deadline is Friday.',
    'Write a mail to the team: the office is closed tomorrow',
    'Write a note that Initech left',
    'The launch is in May',
    'Fix this:\n```ts\ncode\n```\nIt broke the release',
    'Write a summary\nthe budget is approved',
    'Comment faire avec notre client ?',
  ])
    t.notOk(isGeneralQuestion(text), text)
})

t.test('no model is asked about such turns', async t => {
  const acme = await newTeam()
  for (const text of ['Thanks!', 'How do I sort an array in Python?']) {
    const { pass1 } = await acme.share(text)
    t.same([pass1, model.calls.length], [[], 0])
  }
})
