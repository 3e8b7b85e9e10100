import { render } from 'preact'
import { App } from '#api/console/app/app.ts'
import { renderComponent } from '#api/console/app/html.ts'
import { storedTheme, applyTheme } from '#api/console/app/theme.ts'

applyTheme(storedTheme())
render(renderComponent(App, {}), document.querySelector('#console')!)
