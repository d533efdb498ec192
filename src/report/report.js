// Draws the plots of a report from the JSON in it, with Chart.js. Marks the page once done, for tests.
(function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const palette = ['#2a6fdb', '#e07b39', '#3c9d6b', '#9a5cc6', '#c94f64', '#6b7a8f', '#b59b2b'];
  const style = getComputedStyle(document.documentElement);
  Chart.defaults.color = style.getPropertyValue('--soft').trim();
  Chart.defaults.borderColor = style.getPropertyValue('--line').trim();
  Chart.defaults.animation = false;
  let drawn = 0;

  function draw(id, config) {
    const canvas = document.getElementById(id);
    if (config === null) { canvas.replaceWith(Object.assign(document.createElement('p'), {className: 'note', textContent: 'nothing to show'})); return; }
    new Chart(canvas, config);
    drawn += 1;
  }

  const axis = (text) => ({title: {display: true, text: text}});

  // Shares of correct programs in bins of equal width in log2: a bar says the same whichever side of 1x it stands on.
  function bins(values) {
    const low = -4, high = 6, width = 0.25, counts = [];
    for (let i = 0; i < (high - low) / width; i++) counts.push(0);
    values.forEach((v) => {
      const at = Math.floor((Math.log2(v) - low) / width);
      counts[Math.max(0, Math.min(counts.length - 1, at))] += 1 / values.length;
    });
    return {counts: counts, labels: counts.map((_, i) => Math.pow(2, low + i * width).toFixed(2) + '×')};
  }
  const all = data.speedups.map((row) => ({stage: row.stage, ...bins(row.values)}));
  const first = Math.min(...all.map((row) => row.counts.findIndex((c) => c > 0)));
  const last = Math.max(...all.map((row) => row.counts.length - 1 - [...row.counts].reverse().findIndex((c) => c > 0)));
  draw('plot-speedups', all.length === 0 ? null : {
    type: 'line',
    data: {
      labels: all[0].labels.slice(first, last + 1),
      datasets: all.map((row, i) => ({label: row.stage, data: row.counts.slice(first, last + 1), borderColor: palette[i % palette.length], backgroundColor: palette[i % palette.length] + '22', stepped: 'middle', pointRadius: 0, fill: true}))
    },
    options: {scales: {x: axis('speedup over the baseline'), y: {...axis('share of correct programs'), min: 0}}}
  });

  // At most 300 points a curve, each the mean of its neighbours: thousands of steps say no more on a screen.
  function thin(steps, values) {
    const each = Math.ceil(steps.length / 300), out = [];
    for (let i = 0; i < steps.length; i += each) {
      const part = values.slice(i, i + each);
      out.push({x: steps[Math.min(steps.length - 1, i + each - 1)], y: part.reduce((a, b) => a + b, 0) / part.length});
    }
    return out;
  }
  draw('plot-loss', data.training.length === 0 ? null : {
    type: 'line',
    data: {datasets: data.training.map((curve, i) => ({label: curve.stage, data: thin(curve.step, curve.loss), borderColor: palette[i % palette.length], backgroundColor: palette[i % palette.length], pointRadius: 0, borderWidth: 1.5}))},
    options: {scales: {x: {type: 'linear', ...axis('optimiser step')}, y: axis('loss')}}
  });

  // A share falls at each speedup, so the curves are steps. Few programs are faster than 8 times.
  if (data.fast_p.length > 0) {
    const last = (row) => row.curve[row.curve.length - 1][0];
    const end = Math.min(8, 1.1 * Math.max(2, ...data.fast_p.map(last)));
    draw('plot-fast-p', {
      type: 'line',
      data: {datasets: data.fast_p.map((row, i) => ({
        label: row.stage + ', ' + row.group + (row.authors === 'model' ? '' : ', whoever wrote them'),
        data: [...row.curve, [Math.max(end, last(row)), 0]].map(([p, share]) => ({x: p, y: share})),
        borderColor: palette[i % palette.length], backgroundColor: palette[i % palette.length], stepped: 'before', pointRadius: 0, borderWidth: 1.5
      }))},
      options: {scales: {x: {type: 'linear', min: 0, max: end, ...axis('p')}, y: {...axis('share of all tasks'), min: 0, max: 1}}}
    });
  }

  document.body.dataset.plots = String(drawn);
})();
