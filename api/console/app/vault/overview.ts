import { hrefTo } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import {
  formatCompact,
  formatCount,
  formatRelativeTime,
  formatShortDay,
  isoDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { agoView, chip, speakerRow, tierChip } from '#api/console/app/parts/chips.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { useCall, useQuery, useRefresh } from '#api/console/app/queries.ts'
import { addMemoryButton } from '#api/console/app/vault/add-memory.ts'
import { debtSection } from '#api/console/app/vault/reflections.ts'
import { historyChart } from '#api/console/app/vault/history-chart.ts'
import { readOnce } from '#api/console/app/vault/read-once.ts'
import type { ListAnswer, ListedMemory, Tier, VaultStats } from '#api/contract/generated/types.ts'

const latestShown = 5

/** What a vault holds: over time, last of all, today, and what waits for reflection. */
export function Overview(): View {
  const queried = useCall('GET /v1/memory/stats', { query: { by_day: true } })
  return page({
    title: 'Overview',
    description: currentCredential()!.member
      ? html`What your own vault holds. <a href=${hrefTo('team')}>Team</a> has what is shared with
          you.`
      : 'What the vault of this key holds.',
    children: html`${queryView(queried, 'the vault', stats =>
      stats.memories === 0
        ? renderComponent(FirstSteps, { refetch: queried.refetch })
        : renderComponent(FilledVault, { stats }),
    )}`,
  })
}

const firstLookMs = 2_000

/** What to do with an empty vault. It gives way to the overview when the first memory arrives. */
function FirstSteps({ refetch }: { refetch: () => void }): View {
  useRefresh(refetch, firstLookMs)
  const keys = useCall('GET /v1/account/provider-keys', {})
  const providers = keys.answer?.provider_keys.map(({ provider }) => provider) ?? []
  return html`<section class="panel stack">
    <h2>Nothing is remembered yet</h2>
    <ol class="steps stack">
      <li class="done">
        <b>Your key</b>
        <p class="quiet">You are signed in with it: it opens this vault.</p>
      </li>
      <li class=${providers.length > 0 ? 'done' : ''}>
        <b>A model</b>
        <p class="quiet">
          ${
            providers.length > 0
              ? `Keys are kept for ${providers.join(', ')}.`
              : html`A key under <a href=${hrefTo('providers')}>Model providers</a> lets this
                  service call its models. Without one, memory works around calls of your own.`
          }
        </p>
      </li>
      <li>
        <b>The first memory</b>
        <p class="quiet">This page shows it when it arrives, from wherever it comes.</p>
        <div class="actions">
          ${buttonLink('Try it here', hrefTo('playground'), { kind: 'main' })}
          ${buttonLink('Connect a client', hrefTo('connect'))} ${addMemoryButton(refetch)}
          ${buttonLink('Upload a file', hrefTo('files'))}
        </div>
      </li>
    </ol>
  </section>`
}

function FilledVault({ stats }: { stats: VaultStats }): View {
  // The last of the core vault are billed as retrieval.
  const latest = useQuery(
    signal =>
      readOnce(['latest', stats], () =>
        call('GET /v1/memory/list', { query: { limit: latestShown } }, signal),
      ),
    [stats],
  )
  return html`<div class="stack-wide">
    ${vaultFigures(stats)}
    <div class="flow">
      ${section(
        'Latest memories',
        queryView(latest, 'the latest memories', ({ items }) => latestList(items)),
        html`<a href=${hrefTo('timeline')}>Timeline</a>`,
      )}
      ${section(
        'Recalled today',
        renderComponent(RecalledToday, {}),
        html`<a href=${hrefTo('traces')}>Calls</a>`,
      )}
      ${section('Used today', renderComponent(UsedToday, {}))}
      ${section('Kinds of memories, outside sessions', queryView(latest, 'tiers', tierBar))}
      ${debtSection()}
    </div>
  </div>`
}

/** How much a vault holds, as figures and over time. */
function vaultFigures(stats: VaultStats): View {
  const { memories, total_tokens, oldest, newest } = stats
  return html`<dl class="figures">
      ${figure('Memories', formatCount(memories), 'in all tiers and sessions')}
      ${figure('Tokens', formatCompact(total_tokens), 'of text')}
      ${oldest && figure('Oldest', formatShortDay(oldest), formatRelativeTime(oldest))}
      ${newest && figure('Newest', formatShortDay(newest), formatRelativeTime(newest))}
    </dl>
    ${memoriesOverTime(stats, true)}`
}

/** @param linked the numbers lead to the timeline, which is that of the key of this tab */
export const memoriesOverTime = ({ by_day: days }: VaultStats, linked: boolean): View | false =>
  days !== undefined &&
  days.length > 0 &&
  section('Memories over time', historyChart(days, { linked }))

/** How the core vault is made up: one bar, and what its parts mean. */
function tierBar({ tier_counts: counts }: ListAnswer): View {
  const parts = [
    [1, counts?.raw ?? 0, 'what was said'],
    [2, counts?.tier2 ?? 0, 'what happened'],
    [3, counts?.tier3 ?? 0, 'what it means'],
  ] as const
  return html`<div class="panel stack">
    <div class="stacked" aria-hidden="true">
      ${parts.map(
        ([tier, count]) =>
          count > 0 &&
          html`<span key=${tier} class=${`tier-${tier}`} style=${{ flexGrow: count }}></span>`,
      )}
    </div>
    <dl class="stack-tight">
      ${parts.map(
        ([tier, count, words]) =>
          html`<div key=${tier} class="section-head">
            <dt>${tierChip(tier)} ${words}</dt>
            <dd>${formatCount(count)}</dd>
          </div>`,
      )}
    </dl>
  </div>`
}

/** Days of usage are UTC. */
const today = (): string => isoDay(Date.now())

/** What the vault of this key was used for since midnight. */
function UsedToday(): View | null {
  const usage = useCall('GET /v1/account/usage', { query: { start: today() } })
  return queryView(
    usage,
    'the use of today',
    ({ total_requests, total_memory_tokens, by_model }) =>
      html`<div class="stack">
        <dl class="figures">
          ${figure('Requests', formatCount(total_requests))}
          ${figure('Memory tokens', formatCompact(total_memory_tokens), 'stored and recalled')}
          ${figure('Model input', formatCompact(Object.values(by_model).reduce((sum, { input_tokens }) => sum + input_tokens, 0)), 'tokens, memories included')}
        </dl>
        <p class="quiet">Days are UTC. <a href=${hrefTo('usage')}>Other days and models</a></p>
      </div>`,
  )
}

/** The memories that were recalled most since midnight, in every way. Bills nothing. */
function RecalledToday(): View | null {
  const recalled = useCall('GET /v1/traces/memories', {
    query: { since: today(), limit: latestShown },
  })
  return queryView(recalled, 'what was recalled', ({ items }) =>
    items.length === 0
      ? emptyNote(
          'No memory was recalled today',
          'What a model call, a search, a prepare or a tool of MCP finds appears here.',
        )
      : html`<ul class="plain latest recalled">
          ${items.map(({ memory_id, text, role, name, tier, turns, last_recalled_at: at }) =>
            latestRow(
              memory_id,
              { role: role ?? 'user', ...(name && { name }), ...(tier && { tier }) },
              text ?? 'Deleted since, or not to be shown with this key.',
              html`<span>${`Recalled ${pluralize(turns, 'time')}, last `}${agoView(at)}</span>`,
            ),
          )}
        </ul>`,
  )
}

/** What is shown of a memory in a list of the latest. */
export type LatestMemory = Pick<
  ListedMemory,
  'memory_id' | 'text' | 'date' | 'role' | 'name' | 'tier'
> & { session?: string }

/** Memories, shortened. */
export const latestList = (items: readonly LatestMemory[]): View =>
  html`<ul class="plain latest">
    ${items.map(({ memory_id, text, date, role, name, tier, session }) =>
      latestRow(
        memory_id,
        { role, name, tier },
        text,
        html`${tier === 1 && html`<span>${name ?? role}</span>`} ${agoView(date)}
        ${tier > 1 && tierChip(tier)} ${session && chip(session, 'plain', 'Session')}`,
      ),
    )}
  </ul>`

const latestRow = (
  id: string,
  speaker: { role: string; name?: string | undefined; tier?: Tier },
  text: string,
  note: Children,
): View =>
  html`<li key=${id}>${speakerRow(speaker, html`<p class="latest-text">${text}</p>`, note)}</li>`
