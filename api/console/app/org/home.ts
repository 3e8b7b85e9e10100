import { hrefTo } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import {
  dayMs,
  formatCompact,
  formatCost,
  formatCount,
  formatRelativeTime,
  isoDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { chartedTags, knowledgeChart } from '#api/console/app/org/knowledge-chart.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { SharedForm } from '#api/console/app/org/shared-card.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { daysField } from '#api/console/app/parts/chart.ts'
import { agoView, speakerRow, tagChips } from '#api/console/app/parts/chips.ts'
import { actionButton, dialogButton } from '#api/console/app/parts/dialogs.ts'
import { useFilters } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { useCall, useRefresh } from '#api/console/app/queries.ts'
import { showToast } from '#api/console/app/toasts.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type { OrgOverviewAnswer, Pipeline } from '#api/contract/generated/types.ts'

const newestShown = 5

const unfiltered = { days: '90' }

/** What a team knows, who it is from, what waits for a person, what stops it and what today cost. */
export function Home({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const since = isoDay(Date.now() - Number(fields.days) * dayMs)
  const query = useCall('GET /v1/orgs/:orgId/overview', {
    params: { orgId: org },
    query: { since, tags: chartedTags },
  })
  return page({
    title: 'Home',
    description: 'What the team knows, and what waits for you.',
    children: queryView(query, 'the team', overview =>
      isEmpty(overview)
        ? renderComponent(FirstSteps, { org, overview, refetch: query.refetch })
        : html`<div class="stack-wide">
            ${figures(org, overview)} ${pipelineNote(org, overview.pipeline, query.refetch)}
            ${section(
              'Knowledge over time',
              knowledgeChart(overview),
              daysField(of('days').value, of('days').onValue),
            )}
            <div class="halves">
              ${section(
                'Newest',
                renderComponent(Newest, { org }),
                html`<a href=${hrefTo('orgs', org, 'memories')}>Shared memories</a>`,
              )}
              <div class="stack-wide">
                ${section(
                  'Who it is from',
                  contributors(overview),
                  html`<a href=${hrefTo('orgs', org, 'members')}>Members</a>`,
                )}
                ${section(
                  'Model calls today',
                  costOfToday(overview),
                  html`<a href=${hrefTo('orgs', org, 'settings')}>Other days</a>`,
                )}
              </div>
            </div>
          </div>`,
    ),
  })
}

const isEmpty = ({ total, review }: OrgOverviewAnswer): boolean =>
  total.memories === 0 && review.waiting === 0

function figures(org: string, overview: OrgOverviewAnswer): View {
  const { total, by_day, review, members, pipeline } = overview
  const added = by_day.reduce((sum, { memories }) => sum + memories, 0)
  const { waiting, oldest_at } = review
  return html`<dl class="figures">
    ${figure('Shared memories', formatCount(total.memories), `${formatCount(added)} in this time`)}
    ${figure(
      'Waits for review',
      html`<a href=${hrefTo('orgs', org, 'review')}>${formatCount(waiting)}</a>`,
      oldest_at === null ? 'nothing to decide' : `the oldest ${formatRelativeTime(oldest_at)}`,
    )}
    ${figure(
      'Waits for the models',
      formatCount(pipeline.waiting),
      pipeline.waiting === 1 ? 'message not read yet' : 'messages not read yet',
    )}
    ${figure(
      'Members',
      formatCount(members.count),
      members.last_used_at === null
        ? `${formatCount(members.with_key)} with a key, never used`
        : `last seen ${formatRelativeTime(members.last_used_at)}`,
    )}
  </dl>`
}

/** What keeps the pipeline from reading; a fault of its provider stands at the head of each page of the team. */
function pipelineNote(
  org: string,
  { state, given_up: givenUp }: Pipeline,
  refetch: () => void,
): View | false {
  const settings = html`<a href=${hrefTo('orgs', org, 'settings')}>Settings</a>`
  const redrive = async (): Promise<void> => {
    const params = { orgId: org }
    const { redriven } = await call('POST /v1/orgs/:orgId/pipeline/redrive', { params })
    showToast(`${pluralize(redriven, 'message is', 'messages are')} tried again.`)
    refetch()
  }
  const words: Children[] = [
    state === 'paused' && html`<p>Paused: what members say waits. ${settings} resumes it.</p>`,
    state === 'over_budget' &&
      html`<p>
        The budget of today is spent: the rest waits for tomorrow (UTC). ${settings} changes it.
      </p>`,
    givenUp > 0 &&
      html`<p>${pluralize(givenUp, 'message was', 'messages were')} given up after eleven tries.</p>
        <div class="actions">${actionButton('Try again', { act: redrive })}</div>`,
  ].filter(Boolean)
  return words.length > 0 && html`<div class="notice stack-tight" role="status">${words}</div>`
}

function contributors({ members }: OrgOverviewAnswer): View {
  const most = Math.max(1, ...members.contributors.map(({ statements }) => statements))
  return members.contributors.length === 0
    ? emptyNote('No member has said anything in this time', 'What admins seed is not counted here.')
    : html`<ol class="plain latest">
        ${members.contributors.map(
          ({ team_member_id: member, statements, last_said_at }) =>
            html`<li key=${member}>
              ${speakerRow(
                { role: 'user', name: member },
                html`<p class="contributor">${member}</p>
                  <meter
                    max=${most}
                    value=${statements}
                    aria-label=${`Facts from ${member}`}
                  ></meter>`,
                `${pluralize(statements, 'fact')}, last ${formatRelativeTime(last_said_at)}`,
              )}
            </li>`,
        )}
      </ol>`
}

const costOfToday = ({ usage_today: sums }: OrgOverviewAnswer): View =>
  html`<div class="stack">
    <dl class="figures">
      ${figure('Calls', formatCount(sums.calls))}
      ${figure('Tokens in', formatCompact(sums.input_tokens), cachedWords(sums))}
      ${figure('Tokens out', formatCompact(sums.output_tokens))}
      ${figure('Cost', formatCost(sums.cost_usd), unpricedWords(sums))}
    </dl>
    <p class="quiet">Since midnight UTC, by the models that find what is worth sharing.</p>
  </div>`

const cachedWords = ({ cached_input_tokens }: OrgOverviewAnswer['usage_today']): string | false =>
  cached_input_tokens > 0 && `${formatCompact(cached_input_tokens)} of them cached`

const unpricedWords = ({ unpriced_tokens, cost_usd }: OrgOverviewAnswer['usage_today']) => {
  if (cost_usd === null) return 'for these models'
  return unpriced_tokens > 0 ? `without ${formatCompact(unpriced_tokens)} tokens` : 'by list prices'
}

function Newest({ org }: OrgProps): View | null {
  const newest = useCall('GET /v1/orgs/:orgId/memories', {
    params: { orgId: org },
    query: { limit: newestShown },
  })
  return queryView(
    newest,
    'the newest memories',
    ({ items }) =>
      html`<ul class="plain latest">
        ${items.map(
          ({ mem_id, text, author, acquired_at, tags }) =>
            html`<li key=${mem_id}>
              ${speakerRow(
                { role: 'user', name: author },
                html`<p class="latest-text">${text}</p>`,
                html`<span>${author}</span> ${agoView(acquired_at)}
                  ${tags.length > 0 && tagChips(tags)}`,
              )}
            </li>`,
        )}
      </ul>`,
  )
}

const firstLookMs = 2_000

type StepsProps = OrgProps & { overview: OrgOverviewAnswer; refetch: () => void }

/** What to do with a new team, each step ticked when it is done. It gives way to what the team knows. */
function FirstSteps({ org, overview, refetch }: StepsProps): View {
  useRefresh(refetch, firstLookMs)
  const { notice, defined_tags: tags, members, pipeline } = overview
  const counts: Record<string, string> = {
    models: notice === null ? 'They' : '',
    tags: tags > 0 ? pluralize(tags, 'tag') : '',
    members: members.count > 0 ? pluralize(members.count, 'member') : '',
    keys: members.with_key > 0 ? pluralize(members.with_key, 'member has', 'members have') : '',
  }
  const step = (done: boolean, name: string, words: Children, action?: Children): View =>
    html`<li key=${name} class=${done ? 'done' : ''}>
      <b>${name}</b>${' '}${done && html`<span class="unseen">(done)</span>`}
      <p class="quiet">${words}</p>
      ${!done && action && html`<div class="actions">${action}</div>`}
    </li>`
  return html`<section class="panel stack">
    <h2>The team knows nothing yet</h2>
    <ol class="steps stack">
      ${words.steps.map(({ of, name, done, todo, action, path }) => {
        const count = counts[of] ?? ''
        const link = buttonLink(action, hrefTo('orgs', org, path))
        return step(count !== '', name, count ? `${count} ${done}` : todo, link)
      })}
      ${step(
        false,
        'The first memory',
        pipeline.waiting > 0
          ? `${pluralize(pipeline.waiting, 'message is', 'messages are')} being read.`
          : 'It comes from what members say with their keys, or from you. This page shows it when it is there.',
        dialogButton(
          'Seed a memory',
          onClose => renderComponent(SharedForm, { org, onClose, onSaved: refetch }),
          { kind: 'main' },
        ),
      )}
    </ol>
  </section>`
}
