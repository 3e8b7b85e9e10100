import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { formatCost, formatCount, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useUsers, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { chip, tagChips, type Labels } from '#api/console/app/parts/chips.ts'
import {
  form,
  selectField,
  textAreaField,
  textField,
  useFields,
  useFilters,
} from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { useCall } from '#api/console/app/queries.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type {
  OrgUsageSums,
  RetentionRule,
  TriedFact,
  TryTextAnswer,
  TryTextBody,
} from '#api/contract/generated/types.ts'

const noMember = { user: '' }
const noDraft = { text: '', label: '', question: '', examples: '', custom: '', rule: '' }
type Draft = typeof noDraft

/** What would become of a text, if a member said it: nothing is stored. */
export function Trial({ org }: OrgProps): View {
  const { form: member, of: ofMember } = useFilters(noMember)
  const { fields, of } = useFields(noDraft)
  const [tried, setTried] = useState<TryTextAnswer>()
  const users = useUsers(org).items
  const saved = useCall('GET /v1/orgs/:orgId/instructions', { params: { orgId: org } }).answer
  const tryIt = async (): Promise<void> => {
    setTried(undefined)
    const body = toBody(fields, member.user, saved?.anti_rules ?? [])
    setTried(await call('POST /v1/orgs/:orgId/trial', { params: { orgId: org }, body }))
  }
  return page({
    title: 'Try a text',
    description:
      'What would become of a message, by the rules, tags and models of the team. Nothing is stored or shared; the models are paid.',
    children: html`${form({
      verb: 'Try it',
      kind: 'main',
      act: tryIt,
      children: html`${textAreaField({
          label: 'Message of a member',
          ...of('text'),
          rows: 5,
          required: true,
          maxlength: 12_000,
        })}
        <div class="filters">
          ${selectField({
            label: 'Said by',
            ...ofMember('user'),
            choices: [
              ['', 'someone who sees everything'],
              ...users.map(one => [one.user_id, one.team_member_id] as const),
            ],
          })}
        </div>
        <details class="options">
          <summary>With a tag, a rule or instructions that are not saved</summary>
          <div class="stack">
            <div class="filters">
              ${textField({ label: 'Tag', ...of('label'), maxlength: 100, hint: 'A new label, or one to ask otherwise.' })}
              ${textField({ label: 'Its question', ...of('question'), maxlength: 2000 })}
              ${textField({ label: 'Never store', ...of('rule'), maxlength: 2000, hint: 'One more rule.' })}
            </div>
            ${textAreaField({ label: 'Examples of the tag', ...of('examples'), rows: 2, hint: 'One a line.' })}
            ${textAreaField({
              label: 'Instructions of your own',
              ...of('custom'),
              rows: 3,
              maxlength: 20_000,
              hint: 'In place of the saved ones; empty: the saved ones.',
            })}
          </div>
        </details>`,
    })}
    ${tried && triedView(tried)}`,
  })
}

function toBody(
  { text, label, question, examples, custom, rule }: Draft,
  user: string,
  rules: readonly RetentionRule[],
): TryTextBody {
  const lines = examples.split('\n').flatMap(line => line.trim() || [])
  const tag = { label, ...filled({ question }), examples: lines }
  const anti_rules = rule && { anti_rules: [...rules, { match: rule, note: '' }] }
  return {
    text,
    ...filled({ user_id: user }),
    ...(label && { tag }),
    ...((custom || rule) && { instructions: { ...filled({ custom }), ...anti_rules } }),
  }
}

const triedView = ({ facts, not_asked: notAsked, rule, usage }: TryTextAnswer): View => {
  const kept = facts.filter(({ outcome }) => outcome !== 'left_out').length
  return section(
    notAsked ? 'Nothing would be shared' : headline(kept, facts.length - kept),
    html`<div class="stack" role="status">
      ${notAsked && html`<p>${words.not_asked[notAsked]} ${rule && chip(rule, 'bad')}</p>`}
      <ol class="plain">
        ${facts.map((fact, index) => html`<li key=${index}>${factView(fact)}</li>`)}
      </ol>
      <p class="quiet">${costWords(usage)}</p>
    </div>`,
  )
}

const headline = (kept: number, leftOut: number): string => {
  if (kept + leftOut === 0) return 'No facts to share are found'
  const kinds = [
    `${pluralize(kept, 'fact')} kept`,
    leftOut > 0 && `${formatCount(leftOut)} left out`,
  ]
  return kinds.filter(Boolean).join(', ')
}

const costWords = ({ calls, input_tokens, output_tokens, cost_usd }: OrgUsageSums): string =>
  calls === 0
    ? 'No model was called.'
    : `${pluralize(calls, 'model call')}: ${formatCount(input_tokens)} tokens in, ${formatCount(output_tokens)} out${cost_usd === null ? '' : `, ${formatCost(cost_usd)}`}.`

const outcomes = words.tried as Labels<TriedFact['outcome']>

const factView = (fact: TriedFact): View => {
  const { text, note, outcome, left_out_by: leftOutBy, rule, tags, confidence } = fact
  return html`<article class="memory stack-tight">
    <header class="memory-head chips">
      ${chip(...outcomes[outcome])} ${note && chip('as a note', 'busy')}
      ${fact.pending && chip('unseen until reviewed', 'busy')}
      ${confidence !== null && html`<span class="quiet">${formatPercent(confidence)} sure</span>`}
    </header>
    <p class="memory-text">${text}</p>
    ${
      leftOutBy
        ? html`<p>${words.left_out[leftOutBy]} ${rule && chip(rule, 'bad')}</p>`
        : html`<p class="chips">${tagChips(tags)}</p>`
    }
    ${fact.review.length > 0 && html`<p>${`Waits for review: ${fact.review.map(reason => words.review[reason]).join('; ')}.`}</p>`}
    ${fact.memories.map(memory => memoryView(fact, memory))} ${answersView(fact.answers)}
  </article>`
}

const memoryView = (
  { outcome, pending }: TriedFact,
  { mem_id, text, tags, author, new_text: newText }: TriedFact['memories'][number],
): View =>
  html`<div key=${mem_id} class="revision-side stack-close">
    <span class="quiet">
      ${newText === null ? 'Says it already' : pending && outcome === 'new' ? 'Would be replaced, once approved' : 'Now'}
    </span>
    <p class="memory-text">${text}</p>
    <p class="chips">${tagChips(tags)} <span class="quiet">${author}</span></p>
    ${
      newText !== null &&
      html`<span class="quiet">Then</span>
        <p class="memory-text">${newText}</p>`
    }
  </div>`

const answersView = (answers: TriedFact['answers']): View | false =>
  answers.length > 0 &&
  html`<details class="options">
    <summary>What was answered about each tag</summary>
    <p class="chips">
      ${answers.map(({ label, likelihood, applies }) => chip(`${label}: ${formatPercent(likelihood)}`, applies ? 'accent' : 'plain'))}
    </p>
  </details>`
