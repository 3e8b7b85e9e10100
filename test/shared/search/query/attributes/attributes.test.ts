import t from 'tap'
import { askedLabels, hasLabel } from '#shared/search/query/attributes.ts'
import { readPage } from '#test/support/samples/question-samples.ts'

t.test('askedLabels has the labels under which the answer is noted', async t => {
  for (const [label, question] of readPage('labels under which the answer is noted'))
    t.ok(askedLabels(question)?.has(label), `${question} | ${label}`)
  for (const [label, question] of readPage('labels under which it is not'))
    t.notOk(askedLabels(question)?.has(label), `${question} | ${label}`)
})

t.test('hasLabel finds a label at the beginning of a line, with a value behind it', async t => {
  const labels = new Set(['name', 'user name', 'job', 'e-mail', 'имя', 'nome'])
  for (const text of [
    'Name: Ada',
    'name = Ada',
    'My name: Ada',
    'User name: Ada',
    "The user's job: nurse",
    '- Job: nurse',
    'Моё имя: Ада',
    'Il mio nome: Ada',
    'Notes\n* Name : Ada\n',
    'E-Mail：ada@example.org',
  ])
    t.ok(hasLabel(text, labels), text)
  for (const text of ['Name', 'Name:', 'The name: Ada', 'Names: Ada', 'I said name: Ada', ''])
    t.notOk(hasLabel(text, labels), text)
})
