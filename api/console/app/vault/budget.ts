import { call } from '#api/console/app/api-call.ts'
import { formatCost, formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { textField, useFields } from '#api/console/app/parts/fields.ts'
import type { Budget } from '#api/contract/generated/types.ts'

const whole = {
  type: 'number',
  min: 1,
  max: 2_000_000_000,
  step: 1,
  placeholder: 'No limit',
} as const

/** The number in a field; empty is no limit. */
export const limitOf = (typed: string): number | null =>
  typed.trim() === '' ? null : Number(typed)

export const limitText = (limit: number | null): string => String(limit ?? '')

type LimitBinding = { value: string; onValue: (value: string) => void }

/** Fields of a budget, by whom it is for. */
export const limitFields = (
  whose: string,
  limits: Record<'requests' | 'tokens' | 'dollars', LimitBinding>,
): View[] => [
  textField({
    label: `Dollars of ${whose} in 30 days`,
    ...whole,
    min: 0.01,
    max: 1_000_000,
    step: 0.01,
    ...limits.dollars,
    hint: 'For model calls, by list prices, from when it is set. Empty: no limit.',
  }),
  textField({ label: `Requests of ${whose} in 24 hours`, ...whole, ...limits.requests }),
  textField({
    label: `Tokens of ${whose} in 24 hours`,
    ...whole,
    ...limits.tokens,
    hint: 'Input and output of model calls. Empty: no limit.',
  }),
]

/** The limits of a budget: how much of each is used, from 0 to 1 and beyond, and in words, as `3 of 50 requests`. */
const limitsOf = ({
  requests,
  tokens,
  used_requests,
  used_tokens,
  dollars = null,
  used_dollars = 0,
}: Budget): [share: number, words: string][] => [
  ...share(dollars, used_dollars, `${formatCost(used_dollars)} of ${formatCost(dollars)}`),
  ...share(
    requests,
    used_requests,
    `${formatCount(used_requests)} of ${formatCount(requests ?? 0)} requests`,
  ),
  ...share(
    tokens,
    used_tokens,
    `${formatCount(used_tokens)} of ${formatCount(tokens ?? 0)} tokens`,
  ),
]

const share = (limit: number | null, used: number, words: string): [number, string][] =>
  limit === null ? [] : [[used / limit, words]]

/** How much of a budget is used: `$1.20 of $20.00, 3 of 50 requests`. */
export const usedOf = (budget: Budget, between = ', '): string =>
  limitsOf(budget)
    .map(([, words]) => words)
    .join(between)

/** How much of a budget is used, from 0 to 1 and beyond. */
export const fullness = (budget: Budget): number =>
  Math.max(0, ...limitsOf(budget).map(([share]) => share))

/** The limit of a budget of which most is used. */
export const fullestOf = (budget: Budget): string =>
  limitsOf(budget).find(([share]) => share === fullness(budget))?.[1] ?? ''

/** A budget as a bar, with what is used of it in words. */
export const budgetBar = (budget: Budget, words: string): View =>
  html`<span class="share" title=${usedOf(budget)}
    ><meter
      max="1"
      low="0.8"
      high="1"
      optimum="0"
      value=${fullness(budget)}
      aria-hidden="true"
    ></meter>
    <span>${words}</span></span
  >`

/** What is used of a budget; nothing without one. */
export function budgetView(budget: Budget | null): View | null {
  if (!budget) return null
  const { resets_at } = budget
  const until = resets_at === null ? 'in 24 hours' : `until ${formatDateTime(resets_at)}`
  const isFull = fullness(budget) >= 0.8
  return html`<span class=${isFull ? 'key-next' : ''} title=${until}
    >${`Used: ${usedOf(budget)}`}</span
  >`
}

type BudgetProps = { id: string; about: string; budget: Budget | null; onChanged: () => void }

/** Sets the budget of a key. */
export const budgetButton = (props: BudgetProps): View =>
  dialogButton('Budget', onClose => renderComponent(BudgetDialog, { ...props, onClose }), {
    about: props.about,
  })

function BudgetDialog(props: BudgetProps & { onClose: () => void }): View {
  const { id, about, budget, onChanged, onClose } = props
  const { fields, of } = useFields({
    requests: limitText(budget?.requests ?? null),
    tokens: limitText(budget?.tokens ?? null),
    dollars: limitText(budget?.dollars ?? null),
  })
  return dialogForm({
    title: `Budget of ${about}`,
    verb: 'Save',
    fields: limitFields('this key', {
      requests: of('requests'),
      tokens: of('tokens'),
      dollars: of('dollars'),
    }),
    act: () =>
      call('PATCH /v1/keys/:memoryKeyId', {
        params: { memoryKeyId: id },
        body: {
          daily_requests: limitOf(fields.requests),
          daily_tokens: limitOf(fields.tokens),
          monthly_dollars: limitOf(fields.dollars),
        },
      }),
    done: 'The budget is saved.',
    onDone: onChanged,
    onClose,
  })
}
