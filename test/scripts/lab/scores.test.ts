import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { rate } from '#scripts/lab/scores/measure.ts'
import { setReaders } from '#scripts/lab/scores/sets.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { compileCache } from '#test/support/start/compile-cache.ts'
import { runScript } from '#test/support/start/run-script.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const script = 'scripts/lab/index.ts'

/** Each set in the form of its makers: a canoe that is red, and a cat. */
function writeSets(t: Test) {
  const turns = [
    { speaker: 'Ada', dia_id: 'D1:1', text: 'My canoe is red.', blip_caption: 'a canoe' },
    { speaker: 'Ben', dia_id: 'D1:2', text: 'I have a cat.' },
  ]
  const canoe = { question: 'Which colour is the canoe of Ada?', evidence: ['D1:1; D9:9'] }
  const locomo = [
    {
      conversation: {
        speaker_a: 'Ada',
        speaker_b: 'Ben',
        session_1_date_time: '1:56 pm on 8 May, 2023',
        session_1: turns,
      },
      qa: [
        { ...canoe, category: 1 },
        { ...canoe, category: 5 },
      ],
    },
  ]
  const longmemeval = [
    {
      question_id: 'q1',
      question_type: 'single-session-user',
      question: 'Which colour is my canoe?',
      haystack_session_ids: ['s1', 's2'],
      haystack_dates: ['2023/05/30 (Tue) 23:40', '2023/05/31 (Wed) 10:00'],
      haystack_sessions: [
        [{ role: 'user', content: 'My canoe is red.', has_answer: true }],
        [{ role: 'user', content: 'I have a cat.' }],
      ],
      answer_session_ids: ['s1'],
    },
    { question_id: 'q2_abs' },
  ]
  const dir = t.testdir({
    'locomo10.json': JSON.stringify(locomo),
    'longmemeval.json': JSON.stringify(longmemeval),
  })
  const rules = {
    context: 'Here is a list of facts:\n0. Ada is a citizen of Chad.\n1. Ada is a citizen of Peru.',
    questions: ['What is the country of citizenship of Ada?'],
    answers: [['Peru']],
    metadata: { source: 'factconsolidation_sh_6k' },
  }
  const hops = { ...rules, metadata: { source: 'factconsolidation_mh_6k' } }
  writeFileSync(join(dir, 'conflicts.json'), JSON.stringify([hops, rules]))
  for (const name of ['history', 'qa_data'])
    mkdirSync(join(dir, 'benchmark', name), { recursive: true })
  writeFileSync(
    join(dir, 'benchmark/history/history_1.txt'),
    '[2025-03-10 08:00] Gary: I really love this green instrument panel.\n[2025-03-10 08:01] Ada: Nice.',
  )
  const preference = {
    query: 'Set the panel for Gary.',
    reasoning_type: 'preference_conflict',
    gold_memory:
      "[March 10, 2025] At 8:00 AM, Gary said: 'I really love this green instrument panel.'",
  }
  writeFileSync(
    join(dir, 'benchmark/qa_data/qa_1.json'),
    JSON.stringify({ related_to_vehicle_preference: [preference] }),
  )
  mkdirSync(join(dir, 'realtalk'))
  const date_time = '29.12.2023, 22:42:04'
  const talk = {
    name: { speaker_1: 'Ada', speaker_2: 'Ben' },
    session_1: turns.map(({ text: clean_text, ...turn }) => ({ ...turn, clean_text, date_time })),
    session_1_date_time: date_time,
    events_session_1: {},
    qa: [
      { question: 'Which colour is the canoe?', evidence: ['D 1:1; D9:9', ''], category: 3 },
      { question: 'Who?', evidence: ['D9:9'], category: 1 },
    ],
  }
  writeFileSync(join(dir, 'realtalk/Chat_1_Ada_Ben.json'), JSON.stringify(talk))
  const chat = join(dir, 'chats/100K/1')
  mkdirSync(join(chat, 'probing_questions'), { recursive: true })
  const said = [
    { role: 'user', id: 0, time_anchor: 'March-15-2024', content: 'My canoe is red. ->-> 1,1' },
    { role: 'assistant', id: 1, content: 'Noted.' },
  ]
  writeFileSync(join(chat, 'chat.json'), JSON.stringify([{ batch_number: 1, turns: [said] }]))
  const asked = {
    abstention: [{ question: 'Who?' }],
    information_extraction: [
      { question: 'Which colour is my canoe?', source_chat_ids: { first: [0, 7] } },
    ],
  }
  writeFileSync(join(chat, 'probing_questions/probing_questions.json'), JSON.stringify(asked))
  mkdirSync(join(dir, 'fixtures'))
  const belief = (id: string, content: string, more: object = {}) => ({
    _id: id,
    user_id: 'test-user',
    type: 'preference',
    canonical_name: id,
    content,
    scope: ['domain:code'],
    ...more,
  })
  const beliefs = [
    belief('ts', 'Writes TypeScript with strict mode.'),
    belief('db', 'Uses MongoDB with the raw driver.', { pinned: true }),
  ]
  const scope = ['domain:code']
  const cases = [
    {
      scope,
      query: 'TypeScript strict mode',
      expect: { relevantBeliefs: { shouldOnlyInclude: ['ts'] } },
    },
    { scope, query: '', expect: { relevantBeliefs: { maxCount: 0, mustExclude: ['ts'] } } },
  ]
  writeFileSync(join(dir, 'fixtures/beliefs.seed.json'), JSON.stringify(beliefs))
  writeFileSync(join(dir, 'fixtures/retrieval.cases.json'), JSON.stringify(cases))
  return { dir, beam: join(dir, 'chats/100K') }
}

t.test('a rating: shares, one among five, and the gain of an order', t => {
  t.match(rate(['a', 'x', 'b'], ['a', 'b']), { recall5: 1, recall10: 1, any5: 1 })
  t.equal(rate(['a', 'x', 'b'], ['a', 'b']).ndcg10.toFixed(3), '0.920')
  const late = ['1', '2', '3', '4', '5', 'a']
  t.match(rate(late, ['a', 'b']), { recall5: 0, recall10: 0.5, any5: 0 })
  t.end()
})

t.test('the sets are read as their makers publish them', t => {
  const { dir, beam } = writeSets(t)
  const [conversation] = setReaders.locomo!(join(dir, 'locomo10.json'))
  t.match(conversation?.lines[0], {
    id: 'D1:1',
    session: 'session_1',
    role: 'user',
    content: 'Ada: My canoe is red. [image: a canoe]',
    timestamp: Date.UTC(2023, 4, 8, 13, 56),
  })
  t.match(conversation?.questions, [{ kind: 'multi-hop', lines: ['D1:1'] }])
  t.equal(conversation?.questions.length, 1, 'without the adversarial one')
  const haystacks = [...setReaders.longmemeval!(join(dir, 'longmemeval.json'))]
  t.equal(haystacks.length, 1, 'without those that have no answer')
  t.match(haystacks[0], { questions: [{ lines: ['0:0'], sessions: ['s1'] }] })
  t.equal(haystacks[0]?.lines[0]?.timestamp, Date.UTC(2023, 4, 30, 23, 40))
  const facts = [...setReaders.consolidation!(join(dir, 'conflicts.json'))]
  t.match(facts, [{ lines: { length: 2 }, questions: [{ lines: ['1'] }] }], 'of one hop, the last')
  const [car] = setReaders.vehicle!(join(dir, 'benchmark'))
  t.match(car?.questions, [{ kind: 'preference_conflict', lines: ['0'] }])
  const talks = [...setReaders.realtalk!(join(dir, 'realtalk'))]
  t.match(talks[0]?.lines[0], {
    session: 'session_1',
    role: 'user',
    content: 'Ada: My canoe is red. [image: a canoe]',
    timestamp: Date.UTC(2023, 11, 29, 22, 42, 4),
  })
  t.match(talks, [{ lines: [{}, { role: 'assistant' }] }])
  t.same(
    talks[0]?.questions.map(({ kind, lines }) => ({ kind, lines })),
    [{ kind: 'commonsense', lines: ['D1:1'] }],
    'without those of which no line is there',
  )
  const [chat] = setReaders.beam!(beam)
  t.match(chat?.lines[0], { content: /^My canoe is red\.$/, session: '1' })
  t.match(chat?.questions, [{ kind: 'information_extraction', lines: ['0'] }])
  t.end()
})

t.test('the command prints the tables of a set and removes what it stored', async t => {
  const { dir, beam } = writeSets(t)
  const connection = ['--base-url', base, '--key', await buildKey(backend), '--no-harm']
  for (const [set, path] of [
    ['locomo', join(dir, 'locomo10.json')],
    ['beam', beam],
  ] as const) {
    const { code, out, err } = await runScript(script, ['scores', set, path, ...connection], {})
    t.equal(code, 0, err)
    t.match(out, /\| all \| 1 \| 100\.0 \| 100\.0 \| 100\.0 \| 100\.0 \| 100\.0 /)
  }
  const { out } = await runScript(script, ['scores', 'precision', dir, ...connection], {})
  t.match(out, /\| 2 \| 2\/2 \| 1\/1 \| 1\.00 \| 1\.00 \|/)
  const { code, err } = await runScript(script, ['scores', 'unheard-of', ...connection], {})
  t.match({ code, err }, { code: 2, err: /No such set[^]*Name the file/ })
  t.match(await runScript(script, ['nothing'], {}), { code: 2 })
})

t.test('a leaderboard adds, searches and resets, each user apart', async t => {
  const args = ['leaderboard', '--port', '0', '--base-url', base, '--key', await buildKey(backend)]
  const child = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env.PATH, ...compileCache },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })
  const [board] = (await once(lines, 'line')) as [string]
  const send = async (route: string, body?: object) => {
    const [method = '', path = ''] = route.split(' ')
    const response = await fetch(board + path, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    })
    return [response.status, await response.json()] as const
  }
  const metadata = { beliefId: 'b1', scope: 'domain:code' }
  const added = { text: 'My canoe is red.', user_id: 'ada', metadata }
  t.same(await send('POST /add', added), [200, { ok: true }])
  const query = { query: 'colour of the canoe', user_id: 'ada', limit: 5, scope: 'domain:code' }
  t.match(await send('POST /search', query), [
    200,
    { results: [{ id: 'b1', memory: 'My canoe is red.', score: Number }] },
  ])
  t.same(await send('POST /search', { ...query, user_id: 'ben' }), [200, { results: [] }])
  t.same(await send('POST /search', { ...query, scope: 'other' }), [200, { results: [] }])
  t.match(await send('POST /search', { user_id: 'ada' }), [400, { error: String }])
  t.same(await send('POST /wait'), [200, { ok: true }])
  t.equal((await send('GET /'))[0], 404)
  t.same(await send('DELETE /reset'), [200, { ok: true }])
  t.same(await send('POST /search', query), [200, { results: [] }])
})
