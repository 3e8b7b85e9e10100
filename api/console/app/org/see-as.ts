import { filled } from '#api/console/app/api-call.ts'
import { formatCount, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { useRoles, useUsers, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { chip, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import {
  checkboxGroup,
  filters,
  selectField,
  textField,
  useFilters,
} from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import type {
  KeptBackMemory,
  SearchAsMemberAnswer,
  SeenMemory,
  SharedMemory,
} from '#api/contract/generated/types.ts'

const noChoice = { user: '', roles: '', query: '' }

/** What a member is given of the shared memory, and what is kept from them and why. */
export function SeeAs({ org }: OrgProps): View {
  const { fields, form, of, set } = useFilters(noChoice)
  const users = useUsers(org).items
  const roles = useRoles(org).items
  const { user, query } = fields
  const roleIds = idsIn(fields.roles)
  const answer = useCall('POST /v1/orgs/:orgId/memories/search', {
    params: { orgId: org },
    body: { ...(user ? { user_id: user } : { role_ids: roleIds }), ...filled({ query }) },
  })
  return page({
    title: 'See as a member',
    description:
      'What a member is given of the shared memory, found as their own search finds it. Their private memories stay theirs, and nothing of this is recorded as theirs.',
    children: html`${filters(
      selectField({
        label: 'Member',
        ...of('user'),
        choices: [
          ['', 'anyone with these roles'],
          ...users.map(one => [one.user_id, one.team_member_id] as const),
        ],
      }),
      textField({ label: 'Question', type: 'search', ...of('query'), maxlength: 32_000 }),
      !form.user &&
        (roles.length === 0
          ? html`<p class="quiet">There are no roles: a member sees memories without tags.</p>`
          : checkboxGroup({
              label: 'Roles',
              value: idsIn(form.roles),
              onValue: ids => set({ roles: ids.join(',') }),
              choices: roles.map(({ role_id, name }) => [role_id, name] as const),
            })),
    )}
    ${queryView(answer, 'what they see', found => answerView(found, query !== ''))}`,
  })
}

const idsIn = (list: string): string[] => list.split(',').filter(id => id !== '')

function answerView(answer: SearchAsMemberAnswer, isAsked: boolean): View {
  const { memories, kept_back, permitted, dropped } = answer
  return html`<div class="stack-wide">
    <div class="stack-tight" role="status">
      <p>${viewerView(answer)}</p>
      <p class="quiet">
        ${`Of all shared memories they may see ${formatCount(permitted)}; their roles do not allow ${formatCount(dropped)}.`}
      </p>
    </div>
    <div class="halves">
      ${section(
        `Given: ${pluralize(memories.length, 'memory', 'memories')}`,
        listOf(memories, seenView, [
          'Nothing is given',
          isAsked ? 'No memory that they may see fits the question.' : 'They may see no memory.',
        ]),
      )}
      ${section(
        `Kept back: ${pluralize(kept_back.length, 'memory', 'memories')}`,
        listOf(kept_back, keptView, [
          'Nothing is kept back',
          isAsked ? 'Nothing else fits the question.' : 'They may see every memory.',
        ]),
      )}
    </div>
  </div>`
}

const viewerView = ({
  team_member_id: name,
  roles,
  allowed_tags: tags,
  wildcard,
}: SearchAsMemberAnswer): Children => {
  const held = roles.map(role => chip(role.name, 'data'))
  return html`<span class="chips">
    ${html`<b>${name ?? 'Someone'}</b>`}
    ${roles.length === 0 ? html`<span>without a role</span>` : html`with the ${roles.length === 1 ? 'role' : 'roles'} ${held}`}
    <span
      >${wildcard ? 'sees every memory' : `sees memories without tags${tags.length > 0 ? ' and those with no other tags than' : ''}`}</span
    >
    ${!wildcard && tags.length > 0 && tagChips(tags)}
  </span>`
}

const listOf = <Row extends SharedMemory>(
  rows: readonly Row[],
  show: (row: Row) => Children,
  empty: readonly [string, string],
): View =>
  rows.length === 0
    ? emptyNote(...empty)
    : html`<ul class="plain">
        ${rows.map(
          row =>
            html`<li key=${row.mem_id}>
              <article class="memory stack-tight">
                <header class="memory-head chips">
                  <span class="memory-who">${row.author}</span> ${timeView(row.acquired_at)}
                </header>
                <p class="memory-text">${row.text}</p>
                ${show(row)}
              </article>
            </li>`,
        )}
      </ul>`

const seenView = ({ tags, score, reviewed }: SeenMemory): View =>
  html`<p class="chips">
    ${tagChips(tags)} ${!reviewed && chip('Not reviewed', 'busy')}
    ${score !== undefined && html`<span class="quiet">${formatPercent(score)} match</span>`}
  </p>`

const keptView = ({
  tags,
  missing_tags: missing,
  opened_by: roles,
  pending,
}: KeptBackMemory): View =>
  html`${pending && html`<p>It waits for review: no member sees it.</p>`}
  ${
    missing.length > 0 &&
    html`<p class="chips">Not allowed: ${missing.map(tag => chip(tag, 'bad'))}</p>
      <p class="chips">
        ${roles.length === 0 ? 'No one role would allow it.' : html`Allowed by ${roles.map(({ name }) => chip(name, 'good'))}`}
      </p>`
  }
  ${tags.length > missing.length && html`<p class="chips">Has also: ${tagChips(tags.filter(tag => !missing.includes(tag)))}</p>`}`
