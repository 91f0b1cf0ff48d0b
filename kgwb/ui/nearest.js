// Which place an arrow key leads to. live.js uses it for tabs and the nodes of the picture, subgraph_frame.js for the
// nodes of the interactive graph.
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Each place is [x, y], and "from" is the position of one of them. The position of the nearest one in that direction
// is returned, or -1. What lies aside of the direction counts twice.
function nearest(places, from, [x, y]) {
  const [fromX, fromY] = places[from];
  const costs = places.map(([toX, toY]) => {
    const [right, down] = [toX - fromX, toY - fromY];
    const ahead = right * x + down * y;
    return ahead > 0 ? ahead + 2 * Math.abs(right * y + down * x) : Infinity;
  });
  const least = Math.min(...costs);
  return least < Infinity ? costs.indexOf(least) : -1;
}
