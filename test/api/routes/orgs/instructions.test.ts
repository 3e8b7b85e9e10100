import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import { removeInstructions } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })

t.test('200: what an organization begins with', async t => {
  const { admin, org, path } = await buildOrg(backend, base)
  t.match((await admin.get(`${path}/instructions`)).body, {
    org_id: org,
    default_on: true,
    custom: '',
    anti_rules: [],
    exec_rules: [],
  })
})

t.test('200: an organization of which nothing was ever written, as any other', async t => {
  const { admin, org, path } = await buildOrg(backend, base)
  const usual = (await admin.get(`${path}/instructions`)).body
  const forget = () => removeInstructions(backend, org)
  await forget()
  const { status, body } = await admin.get(`${path}/instructions`)
  t.equal(status, 200)
  t.match(body, { ...usual, updated_at: Number })
  const put = await admin.send('PUT', `${path}/instructions`, { body: { custom: 'Keep it short' } })
  t.match(put, { status: 200, body: { ...usual, custom: 'Keep it short', updated_at: Number } })
  await forget()
  const rules = { body: { anti_rules: [{ match: 'pay' }] } }
  t.match(await admin.send('PUT', `${path}/instructions`, rules), {
    status: 200,
    body: { default_on: true, custom: '', anti_rules: [{ match: 'pay' }] },
  })
})

t.test('200: PUT writes only what is there', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const put = async (body: unknown) => {
    const answer = await admin.send('PUT', `${path}/instructions`, { body })
    t.strictSame((await admin.get(`${path}/instructions`)).body, answer.body)
    return answer.body
  }
  const custom = `Keep {"what"} we decide; <ignore> 'the rest' $1 \\ ${'漢'.repeat(6_000)}`
  t.match(await put({ custom }), { default_on: true, custom, anti_rules: [], exec_rules: [] })
  const ruled = await put({
    anti_rules: [{ match: 'passwords', note: 'never' }, { match: 'passwords' }],
    exec_rules: [{ match: 'salaries', note: 'say only that it came up' }],
  })
  t.match(ruled, { custom, anti_rules: [{ match: 'passwords', note: 'never' }, { note: '' }] })
  t.match(await put({ default_on: false }), { ...ruled, default_on: false, updated_at: Number })
  t.match(await put({ exec_rules: [] }), { anti_rules: ruled.anti_rules, exec_rules: [] })
  t.match(await put({ custom: '' }), { custom: '', default_on: false })
  await put({ custom: 'only what is signed' })
  const absent = { custom: null, default_on: false }
  t.match(await put(absent), { custom: 'only what is signed' }, 'null is absent')
  for (const body of [{}, { custom: null }]) {
    const nothing = await admin.send('PUT', `${path}/instructions`, { body })
    t.match(nothing, { status: 400, body: { error: 'Nothing to change' } })
  }
})

t.test('200: rules keep their ids, and nobody takes those of others', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const other = await buildOrg(backend, base)
  const at = `${path}/instructions`
  const put = async (body: unknown) => (await admin.send('PUT', at, { body })).body
  const { anti_rules: rules } = await put({ anti_rules: [{ match: 'a' }, { match: 'b' }] })
  const turned = await put({
    anti_rules: [rules[1], { match: 'new' }, { ...rules[0], note: 'changed' }],
  })
  t.strictSame(
    turned.anti_rules.map((rule: { id: string }) => rule.id),
    [rules[1].id, turned.anti_rules[1].id, rules[0].id],
  )
  t.equal(turned.anti_rules[2].note, 'changed')
  t.strictSame((await put({ anti_rules: turned.anti_rules })).anti_rules, turned.anti_rules)

  const moved = await put({ anti_rules: [rules[0]], exec_rules: [rules[1], rules[1]] })
  t.equal(moved.exec_rules[0].id, rules[1].id, 'from one list to the other')
  t.not(moved.exec_rules[1].id, rules[1].id, 'an id names one rule')
  const kept = await put({ exec_rules: [{ ...rules[0] }] })
  t.not(kept.exec_rules[0].id, rules[0].id, 'that one stands in the other list')

  const { body: foreign } = await other.admin.send('PUT', `${other.path}/instructions`, {
    body: { anti_rules: [moved.anti_rules[0]] },
  })
  t.not(foreign.anti_rules[0].id, moved.anti_rules[0].id)
  t.strictSame((await admin.get(at)).body.anti_rules, moved.anti_rules, 'left alone')
})

t.test('writes at once: each field is what one of them wrote', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const bodies = Array.from({ length: 8 }, (_, n) => ({
    custom: `c${n}`,
    anti_rules: Array.from({ length: n }, () => ({ match: `m${n}` })),
  }))
  await Promise.all(bodies.map(body => admin.send('PUT', `${path}/instructions`, { body })))
  const { custom, anti_rules } = (await admin.get(`${path}/instructions`)).body
  const n = Number(custom.slice(1))
  t.equal(anti_rules.length, n)
  t.ok(anti_rules.every((rule: { match: string }) => rule.match === `m${n}`))
})

t.test('400: rules that hold no words', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const bad: [unknown, RegExp][] = [
    [
      { anti_rules: [{ match: 'x' }, { match: ' \n\t ' }] },
      /anti_rules\[1\]\.match holds no words/,
    ],
    [{ exec_rules: [{ match: '\u200B\u00AD' }] }, /exec_rules\[0\]\.match holds no words/],
  ]
  for (const [body, error] of bad) {
    t.match(await admin.send('PUT', `${path}/instructions`, { body }), {
      status: 400,
      body: { error },
    })
  }
})
