import type { EndpointResponse } from '#api/client/client.ts'
import { hrefTo } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatShortDay, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmButton, dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { checkboxField, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, line } from '#api/console/app/parts/notes.ts'
import { useCall, useListing, type QueryState } from '#api/console/app/queries.ts'

/** The account's keys for model providers: stored sealed, and never displayed again. */
export function Providers(): View {
  const list = useListing('GET /v1/account/provider-keys', {}, answer => answer.provider_keys)
  const models = useCall('GET /v1/models', {})
  const refetch = (): void => {
    list.refetch()
    models.refetch()
  }
  return page({
    title: 'Model providers',
    description: 'Keys with which this service calls models for the account and its teams.',
    actions: dialogButton(
      'Add a provider key',
      onClose => renderComponent(AddForm, { onClose, onAdded: refetch }),
      { kind: 'main' },
    ),
    children: editableList(list, {
      what: 'provider keys',
      empty: [
        'No provider key',
        'Model calls bring their own. A key kept here serves every key of the account.',
      ],
      key: ({ provider }) => provider,
      main: ({ provider, masked_key, updated_at }) => {
        const [state, fault] = keyState(provider, models)
        return html`${line(html`<b>${provider}</b> <code>${masked_key}</code> ${state}`, [
          `since ${formatShortDay(updated_at)}`,
        ])}
        ${fault && html`<p class="quiet">${fault}</p>`}`
      },
      actions: ({ provider }) =>
        confirmButton('Forget', {
          about: `key for ${provider}`,
          title: `Forget the key for ${provider}?`,
          message:
            'Model calls of every Memory Key of the account stop using it at once, and teams whose models it pays for stop sharing.',
          act: () => call('DELETE /v1/account/provider-keys/:provider', { params: { provider } }),
          onDone: refetch,
          done: 'The key is forgotten.',
        }),
    }),
  })
}

/** Whether the provider takes the key, as far as its list of models tells; the words of a refusal apart. */
function keyState(
  provider: string,
  { answer, fault }: QueryState<EndpointResponse<'GET /v1/models'>>,
): readonly [state: View | null, fault?: string] {
  const list = answer?.providers.find(one => one.provider === provider)
  const words = list?.fault ?? (fault?.message.includes(provider) ? fault.message : undefined)
  if (words !== undefined) return [chip('refused', 'bad'), words]
  if (list === undefined) return [null]
  return [
    html`${chip('works', 'good')}
      <a href=${hrefTo('playground')}>${pluralize(list.models.length, 'model')}</a>`,
  ]
}

type AddProps = { onClose: () => void; onAdded: () => void }

function AddForm({ onClose, onAdded }: AddProps): View {
  const known = useCall('GET /v1/account/provider-keys')
  const { fields, of } = useFields({ provider: 'openai', key: '', isTried: true })
  const model = known.answer?.processors.find(
    ({ provider }) => provider === fields.provider,
  )?.classify_model
  return dialogForm({
    title: 'Add a provider key',
    verb: 'Save',
    onClose,
    act: async () => {
      const params = { provider: fields.provider }
      const key = fields.key.trim()
      if (fields.isTried && model)
        await call('POST /v1/account/provider-keys/:provider/check', {
          params,
          body: { key, models: [model] },
        })
      await call('PUT /v1/account/provider-keys/:provider', { params, body: { key } })
    },
    onDone: onAdded,
    done: fields.isTried && model ? 'The key works, and is stored.' : 'The key is stored untried.',
    fields: html`${selectField({
      label: 'Provider',
      ...of('provider'),
      choices: (known.answer?.providers ?? []).map(each => [each, each] as const),
    })}
    ${textField({
      label: 'Key',
      type: 'password',
      ...of('key'),
      required: true,
      autocomplete: 'off',
      hint: 'It takes the place of the one before.',
    })}
    ${
      model &&
      checkboxField({
        label: `Ask ${model} once before the key is stored`,
        ...of('isTried'),
        hint: 'A few tokens, which the provider charges.',
      })
    }`,
  })
}
